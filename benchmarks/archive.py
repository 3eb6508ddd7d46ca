"""Print what large archives cost: peak memory of reading and writing one, and how commands grow with their content.

    python benchmarks/archive.py [--mebibytes N] [--counts N,N,...] [--runs N] [--folder DIR] [--update]

The archives are made on the fly. Memory is that of a whole process beyond what importing mlfbuild.archive takes and
the largest member that it returns, each as `bytes` and each parameter as an array. Commands are measured as whole
processes: the least CPU time of user and system of a few runs, so that other work of the machine hardly counts, and
peak memory. The exponent of their growth is that of the CPU time beyond the time for an archive with one module, from
the second largest to the largest count: 1 is linear. ``--update`` writes benchmarks/results/archive.json.

Exits with 1 if a figure is over its limit: 64 MiB for reading and writing; 2 s and 300 MiB to inspect 1,000 modules;
an exponent of 1.35.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import math
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from archive_kinds import GROWING, large, other
from whole_process import Run, measure

import mlfbuild

RESULTS = Path(__file__).parent / "results/archive.json"
MEMORY_LIMIT = 64
"""MiB beyond the largest member."""
TIME_LIMIT = 2.0
"""Seconds of CPU to inspect ``MODULES`` modules."""
INSPECT_LIMIT = 300
"""MiB to inspect ``MODULES`` modules."""
MODULES = 1000
EXPONENT_LIMIT = 1.35
"""Caches and the garbage collector of Python add up to 0.2 to linear growth."""
LEAST_SECONDS = 0.5
"""Growth below this is too small to have an exponent."""
MEMBERS = 8
"""Large members of the large archive: parameters, and objects."""


# Children ------------------------------------------------------------------------------------------------------------

IMPORT = "import mlfbuild.archive"
READ = """
import sys
import mlfbuild

library = mlfbuild.open_archive(sys.argv[1])
for module in library.modules:
    for content in [module.graph_json, module.source_text, *(file.content for file in module.codegen)]:
        data = bytes(content)
        del data
    for name in module.params:
        array = module.params[name]
        assert array.sum() >= 0
        del array
"""
WRITE = """
import sys
import mlfbuild

mlfbuild.write_archive(mlfbuild.open_archive(sys.argv[1]), sys.argv[1] + ".copy")
"""
OPEN = """
import sys
import mlfbuild

mlfbuild.open_archive(sys.argv[1])
"""
COMMANDS: dict[str, list[str]] = {
    "open_archive": ["-c", OPEN, "{archive}"],
    "inspect": ["-m", "mlfbuild", "inspect", "{archive}"],
    "inspect -v": ["-m", "mlfbuild", "inspect", "-v", "{archive}"],
    "inspect --format json": ["-m", "mlfbuild", "inspect", "{archive}", "--format", "json"],
    "validate": ["-m", "mlfbuild", "validate", "{archive}"],
    "compare": ["-m", "mlfbuild", "compare", "{archive}", "{archive}"],
    "convert": ["-m", "mlfbuild", "convert", "{archive}", "-o", "{folder}/out.tar"],
    "merge": ["-m", "mlfbuild", "merge", "{archive}", "{folder}/other.tar", "-o", "{folder}/out.tar"],
}


def make(kind: str, path: Path, amount: int) -> Path:
    """Write an archive in a separate process: a child's peak is never below what its parent had in memory."""
    subprocess.run([sys.executable, __file__, "--make", kind, str(path), str(amount)], check=True)
    return path


def python(script: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", script, *arguments]


# Tables --------------------------------------------------------------------------------------------------------------


def memory_table(folder: Path, mebibytes: int) -> bool:
    """Print the memory of reading and writing a large archive; returns whether it is within the limit."""
    path = folder / "large.tar"
    make("large", path, mebibytes)
    largest = mebibytes / MEMBERS
    base = measure(python(IMPORT)).mebibytes
    print(
        f"an archive of {path.stat().st_size / 2**20:.0f} MiB, largest member {largest:.1f} MiB; import: {base:.1f} MiB"
    )
    print(f"{'':8} {'seconds':>8} {'peak MiB':>9} {'beyond the largest member':>26} {'and the import':>15}")
    good = True
    for name, script, held in (("read", READ, largest), ("write", WRITE, 0.0)):
        run = measure(python(script, str(path)))
        beyond = run.mebibytes - held
        good &= beyond < MEMORY_LIMIT
        print(f"{name:8} {run.seconds:8.2f} {run.mebibytes:9.1f} {beyond:26.1f} {beyond - base:15.1f}", flush=True)
    if not filecmp.cmp(path, f"{path}.copy", shallow=False):
        sys.exit("the archive that was written differs from the one that was read")
    return good


@dataclass(frozen=True)
class Growth:
    """A command on archives in which something grows."""

    grows: str
    command: str
    cpu_seconds: dict[int, float]
    """By count; 1 is an archive with one module."""
    mebibytes: dict[int, float]

    @property
    def exponent(self) -> float | None:
        """Of the growth between the two largest counts; ``None`` if there is too little growth."""
        least, *_, before, last = sorted(self.cpu_seconds)
        first, second = (self.cpu_seconds[count] - self.cpu_seconds[least] for count in (before, last))
        return math.log(second / first, last / before) if first > 0 and second > LEAST_SECONDS else None

    @property
    def good(self) -> bool:
        """Whether the figures are within their limits."""
        inspected = self.grows.endswith("modules") and self.command == "inspect" and MODULES in self.cpu_seconds
        if inspected and (self.cpu_seconds[MODULES] > TIME_LIMIT or self.mebibytes[MODULES] > INSPECT_LIMIT):
            return False
        return self.exponent is None or self.exponent < EXPONENT_LIMIT


def growth_table(folder: Path, counts: list[int], runs: int) -> list[Growth]:
    """Print, for each respect in which archives grow, the CPU time, memory and growth of each command."""
    make("other", folder / "other.tar", 1)
    found = []
    for grows in GROWING:
        sizes = [1, *counts]
        archives = {count: make(grows, folder / f"{count}.tar", count) for count in sizes}
        print(f"\n{grows:22} {'CPU s':>6}" + "".join(f"{count:7}" for count in counts) + " exponent   MiB")
        for name, words in COMMANDS.items():
            best = {count: fastest(words, archive, runs) for count, archive in archives.items()}
            growth = Growth(
                grows,
                name,
                {count: round(run.cpu_seconds, 2) for count, run in best.items()},
                {count: round(run.mebibytes) for count, run in best.items()},
            )
            found.append(growth)
            exponent = "-" if growth.exponent is None else f"{growth.exponent:.2f}"
            figures = "".join(f"{best[count].cpu_seconds:7.2f}" for count in sizes)
            mark = "" if growth.good else "  over the limit"
            print(f"{name:22}{figures} {exponent:>8} {best[sizes[-1]].mebibytes:5.0f}{mark}", flush=True)
    return found


def fastest(words: list[str], archive: Path, runs: int) -> Run:
    """Return the run of a command on ``archive`` that takes the least CPU time."""
    command = [word.format(archive=archive, folder=archive.parent) for word in words]
    return min((measure([sys.executable, *command]) for _ in range(runs)), key=lambda run: run.cpu_seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mebibytes", type=int, default=500)
    parser.add_argument("--counts", default="250,500,1000,2000", help="with commas, ascending")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the archives are made, twice their size at a time")
    parser.add_argument("--update", action="store_true", help="write benchmarks/results/archive.json")
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        kind, path, amount = options.make
        kinds = {**GROWING, "large": lambda mebibytes: large(mebibytes, MEMBERS), "other": lambda _: other()}
        mlfbuild.write_archive(kinds[kind](int(amount)), Path(path))
        return
    counts = [int(count) for count in options.counts.split(",")]
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        good = memory_table(Path(folder), options.mebibytes)
        found = growth_table(Path(folder), counts, options.runs)
    if options.update:
        rows = [{**asdict(row), "exponent": row.exponent and round(row.exponent, 2)} for row in found]
        RESULTS.write_text("[\n " + ",\n ".join(map(json.dumps, rows)) + "\n]\n")
    if not (good and all(row.good for row in found)):
        sys.exit("over the limit")


if __name__ == "__main__":
    main()
