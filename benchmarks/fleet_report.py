"""Print what `mlfbuild fleet report --git` needs for 1,000 images and 200 commits: collecting once, and again.

    python benchmarks/fleet_report.py [--images N] [--commits N] [--changed N | --dense] [--folder DIR]

The repository has a report for each image; each commit changes some of them. The first overview parses every content,
the others take all figures from the table in the cache. Times are of the whole process and those that it starts.

With --dense, each commit changes every image, 200,000 contents. To collect them takes minutes, so it is done for a
twentieth and a tenth of the commits, which shows that it is linear. The table of all is filled by the same code, but
reports are not checked against their schema.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mlfbuild.report.fleet import figure_table, fleet_of_commits, table
from mlfbuild.report.fleet.columns import figures_in

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


def run(folder: Path, cache: Path, *words: str) -> str:
    """Return the seconds of an overview and how many contents it parsed, as text."""
    command = [sys.executable, "-m", "mlfbuild", "fleet", "report", "--git", "main", *words]
    begin, used = time.perf_counter(), cpu()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    seconds = f"{time.perf_counter() - begin:7.2f} s, {cpu() - used:7.2f} s of CPU"
    return f"{seconds}   {next((line for line in done.stderr.splitlines() if ' parsed' in line), '')}".rstrip()


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def unchecked(data: bytes) -> table.BlobFigures:
    """Return what ``table`` finds in a report, without the check of its schema, which takes most of the time."""
    (figures,) = map(figures_in, json.loads(data)["images"])
    return table.BlobFigures({figures[table.TITLE]: figures})


def fill(folder: Path, cache: Path) -> None:
    """Put all contents of the repository into the table of ``cache``."""
    os.environ["XDG_CACHE_HOME"] = str(cache)
    table._parsed = unchecked  # noqa: SLF001 - all else is as in `mlfbuild fleet report`
    os.chdir(folder)
    with figure_table() as made:
        fleet_of_commits("main", "**/*.json", made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--changed", type=int, default=50, help="images that a commit changes")
    parser.add_argument("--dense", action="store_true", help="a commit changes all images")
    parser.add_argument("--folder", type=Path, help="keep the repositories here, which must be empty")
    options = parser.parse_args()
    changed = options.images if options.dense else options.changed
    with tempfile.TemporaryDirectory() as temporary:
        folder, cache = (options.folder or Path(temporary)).absolute(), Path(temporary) / "cache"
        print(f"{options.images} images, {options.commits} commits, {changed} images changed by each")
        for part in (20, 10) if options.dense else ():
            make(folder / f"part{part}", options.images, options.commits // part, changed)
            print(f"collected {run(folder / f'part{part}', cache / f'{part}', '-v', '--format', 'csv')}", flush=True)
        make(folder / "repository", options.images, options.commits, changed)
        if options.dense:
            fill(folder / "repository", cache)
        else:
            print(f"collected {run(folder / 'repository', cache, '-v', '--format', 'csv')}", flush=True)
        for form in ("txt", "csv", "json", "html"):
            words = ("-o", "fleet.html") if form == "html" else ("--format", form.replace("txt", "text"))
            print(f"{form:9} {run(folder / 'repository', cache, *words)}", flush=True)
        print(f"limit from the table: {SECONDS:.0f} s")


if __name__ == "__main__":
    main()
