"""Count the instructions of one inference of the MLPerf Tiny networks, and measure flash, arena and stack.

    python benchmarks/instructions.py                 measure all, compare with what is committed (`make benchmark`)
    python benchmarks/instructions.py --update        and commit to it: benchmarks/results/counts.json, tables of docs/
    python benchmarks/instructions.py [--networks kws ...] [--cpus cortex-m4 ...] [--memory smallest ...] [--profile]

Needs ../shared beside the repository: the networks, their vectors and the counter. Each network is compiled for each
core, built with arm-none-eabi-gcc -O2, run on QEMU, and its outputs compared with the vectors of TensorFlow Lite Micro,
float32 (networks called _f32) within 1e-5. Counts are instructions, not cycles; they repeat exactly, whatever else the
machine does. Exit status 1 where a figure grew by more than it may, 2 where something cannot be measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from counting.firmware import BOARDS, GUARDED, MeasurementError, compiler_version
from counting.measure import NETWORKS, Case, Result, measure
from counting.report import update_pages
from counting.results import CASES, COMMITTED, Committed, grown, load, save

from mlfbuild.native.settings import MEMORY

_ROW = "{:10} {:4} {:9} {:>12} {:>8} {:>7} {:>10} {:>8} {:>6}"


def measured(case: Case, keep: Path | None, top: int) -> Result:
    """Measure ``case`` in a new folder, which is below ``keep`` or deleted afterwards."""
    if keep is not None:
        return measure(case, keep / str(case), top=top)
    with tempfile.TemporaryDirectory() as folder:
        return measure(case, Path(folder), top=top)


def measure_all(cases: Sequence[Case], options: argparse.Namespace, known: Committed | None) -> dict[Case, Result]:
    """Measure ``cases``, some at a time, and print a line each."""
    print(_ROW.format("network", "core", "memory", "instructions", "change", "code", "constants", "arena", "stack"))
    results = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        work = partial(measured, keep=options.keep, top=20 if options.profile else 0)
        for case, r in zip(cases, pool.map(work, cases), strict=True):
            results[case] = r
            old = known.results.get(case) if known else None
            change = "" if old is None else f"{100 * (r.instructions / old.instructions - 1):+.2f} %"
            figures = (f"{figure:,}" for figure in (r.code, r.constants, r.arena, r.stack))
            core = case.cpu.removeprefix("cortex-").upper()
            print(_ROW.format(case.network, core, case.memory, f"{r.instructions:,}", change, *figures), flush=True)
    return results


def judge(results: dict[Case, Result], known: Committed) -> Iterator[str]:
    """Yield what is worse than what is committed."""
    version = compiler_version()
    if known.compiler != version:
        yield f"{COMMITTED.name} has the counts of GCC {known.compiler}, these are of GCC {version}: not comparable"
        return
    for case, result in results.items():
        yield from grown(case, known.results.get(case), result)


def chosen(options: argparse.Namespace) -> list[Case]:
    """Return the cases that the options ask for; all that are committed where they ask for none."""
    if not (options.networks or options.cpus or options.memory):
        return list(CASES)
    return [
        Case(network, cpu, memory)
        for network in options.networks or NETWORKS
        for cpu in options.cpus or GUARDED
        for memory in options.memory or ["balanced"]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=NETWORKS)
    parser.add_argument("--cpus", nargs="+", choices=BOARDS)
    parser.add_argument("--memory", nargs="+", choices=MEMORY, help="values of the option memory, default balanced")
    parser.add_argument("--update", action="store_true", help="write the results into the repository")
    parser.add_argument("--profile", action="store_true", help="print instructions by function")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave sources and images below this folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    cases = chosen(options)
    if options.update and cases != list(CASES):
        parser.error("--update measures all; leave --networks, --cpus and --memory away")
    known = load() if COMMITTED.exists() else None
    try:
        results = measure_all(cases, options, known)
        problems = [] if known is None or options.update else list(judge(results, known))
        if options.update:
            committed = Committed(compiler_version(), results)
            save(committed)
            update_pages(committed)
    except MeasurementError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
