"""Print what `mlfbuild fleet report --git` needs for 1,000 images and 200 commits: collecting once, and again.

    python benchmarks/fleet_report.py [--images N] [--commits N] [--changed N] [--folder DIR]

The repository has a report for each image; each commit changes some of them. The first overview parses every content,
the second one takes all figures from the table in the cache, as does the page. Times are of the whole process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.reports import budget, image, kws, others, report

FIRST = 1_750_000_000
DAY = 86_400
SECONDS = 5.0
"""For an overview from the table."""


def content(number: int, size: int) -> bytes:
    """Return the report of an image whose model has ``size`` bytes of weights."""
    made = image(f"app{number:04} for m4", [kws(size, budget=budget(flash=60_000))], others(), sha256=f"{size:064x}")
    return json.dumps(report(made)).encode()


def stream(images: int, commits: int, changed: int) -> Iterator[bytes]:
    """Yield the input of ``git fast-import``: a commit with all images, then some that change ``changed`` of them."""
    drawn = random.Random(1)
    sizes = dict.fromkeys(range(images), 8000)
    for number in range(commits):
        touched = drawn.sample(range(images), changed) if number else range(images)
        time_of = FIRST + number * DAY
        yield f"commit refs/heads/main\ncommitter A <a@example.com> {time_of} +0000\ndata 6\nUpdate\n".encode()
        for each in touched:
            sizes[each] += drawn.randrange(1, 400)
            data = content(each, sizes[each])
            yield b"M 100644 inline images/%04d.json\ndata %d\n%s\n" % (each, len(data), data)


def make(folder: Path, images: int, commits: int, changed: int) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", folder], check=True)
    with subprocess.Popen(["git", "fast-import", "--quiet"], cwd=folder, stdin=subprocess.PIPE) as git:
        assert git.stdin is not None
        git.stdin.writelines(stream(images, commits, changed))


def run(folder: Path, cache: Path, *words: str) -> tuple[float, str]:
    """Return the seconds of an overview, and how many contents it parsed."""
    command = [sys.executable, "-m", "mlfbuild", "fleet", "report", "--git", "main", "-v", *words]
    begin = time.perf_counter()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - begin
    return seconds, next(line for line in done.stderr.splitlines() if " parsed" in line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--changed", type=int, default=50, help="images that a commit changes")
    parser.add_argument("--folder", type=Path, help="keep the repository here, which must be empty")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        repository, cache = (options.folder or Path(temporary)) / "repository", Path(temporary) / "cache"
        make(repository, options.images, options.commits, options.changed)
        print(f"{options.images} images, {options.commits} commits, {options.changed} images changed by each")
        for name, words in (
            ("collected", ("--format", "csv")),
            ("again, CSV", ("--format", "csv")),
            ("again, page", ("-o", "fleet.html")),
        ):
            seconds, parsed = run(repository, cache, *words)
            print(f"{name:12} {seconds:7.2f} s   {parsed}", flush=True)
        print(f"limit from the table: {SECONDS:.0f} s")


if __name__ == "__main__":
    main()
