"""Print the time and the peak memory of `mlfbuild compile`, whole process, one line a model.

    python benchmarks/compile.py [--runs N] [--cpu CPU] [--large] [MODEL ...]

Without models: the int8 networks of ../shared/models beside the repository, and with --large three networks of 50 MB,
which are made on the fly. Seconds are on the clock, the least and the median of the runs, and of the CPU, the least:
these hardly change where the machine has other work as well. What TVM 0.14 needs for the same model stands beside it
where it was measured, once, on a two-core machine (import, compile and export of an archive). Exits with 1 where a
figure is over its limit.
"""

from __future__ import annotations

import argparse
import functools
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from whole_process import measure, mlfbuild

SHARED = Path(os.environ.get("MLFBUILD_SHARED", Path(__file__).resolve().parents[2] / "shared"))
TVM = {"kws_int8": (5.9, 249), "vww_int8": (13.0, 252)}
"""Seconds and MiB."""
LARGE = 50
"""Megabytes."""
SECONDS_OF_A_MEGABYTE = 2.0
"""Seconds of CPU, besides imports, for a network of a megabyte or less, such as a detector of a hundred operators."""


@dataclass(frozen=True)
class Limit:
    """The time and memory that a compilation may take."""

    seconds: float
    mebibytes: float


def limit_of(model: Path) -> Limit:
    """Return the limit: of a network in ../shared that of its kind, of a large one three times its size."""
    size = model.stat().st_size / 2**20
    if size >= 4:
        return Limit(20 * size / LARGE, 3 * size)
    if model.parent == SHARED / "models":
        return Limit(1.5 if model.stem.startswith("vww") else 1.0, 100)
    return Limit(imports() + SECONDS_OF_A_MEGABYTE * max(size, 1), 100)


@functools.cache
def imports() -> float:
    """Return the seconds of CPU that importing the compiler takes."""
    command = [sys.executable, "-c", "import mlfbuild.cli.app, mlfbuild.native.build"]
    return min(measure(command).cpu_seconds for _ in range(3))


def line(model: Path, cpu: str, runs: int, folder: str) -> tuple[str, bool]:
    """Measure one model; return its row of the table, and whether it is within its limit."""
    command = [mlfbuild(), "compile", str(model), "--cpu", cpu, "-o", f"{folder}/{model.stem}.tar", "-q"]
    results = [measure(command) for _ in range(runs)]
    seconds = [result.seconds for result in results]
    cpu_seconds = min(result.cpu_seconds for result in results)
    peak = max(result.mebibytes for result in results)
    limit = limit_of(model)
    times = f"{min(seconds):8.2f} {statistics.median(seconds):8.2f} {cpu_seconds:8.2f}"
    row = f"{model.name:20} {times} {peak:8.1f}   {limit.seconds:.1f} s, {limit.mebibytes:.0f} MiB"
    if model.stem in TVM:
        row += "   TVM 0.14: {:.1f} s, {:.0f} MiB".format(*TVM[model.stem])
    return row, cpu_seconds <= limit.seconds and peak <= limit.mebibytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--cpu", default="cortex-m4")
    parser.add_argument("--large", action="store_true", help=f"also networks of {LARGE} MB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = options.models or sorted((SHARED / "models").glob("*_int8.tflite"))
        if options.large:  # in a separate process: a child's peak is never below what its parent had in memory
            maker = Path(__file__).with_name("large_networks.py")
            subprocess.run([sys.executable, maker, folder, "--megabytes", str(LARGE)], check=True, capture_output=True)
            models = [*models, *sorted(Path(folder).glob("large_*"))]
        if not models:
            parser.error(f"{SHARED}/models has no models; name some")
        print(f"{'model':20} {'min s':>8} {'median s':>8} {'CPU s':>8} {'peak MiB':>8}   at most")
        good = True
        for model in models:
            text, within = line(model, options.cpu, options.runs, folder)
            print(text, flush=True)
            good &= within
    if not good:
        sys.exit("over the limit")


if __name__ == "__main__":
    main()
