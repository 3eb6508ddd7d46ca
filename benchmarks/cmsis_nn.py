"""Measure the int8 networks of MLPerf Tiny with CMSIS-NN's kernels, `options: {kernels: cmsis-nn}`, beside our own.

    MLFBUILD_CMSIS_NN_7=../CMSIS-NN python benchmarks/cmsis_nn.py [--update]

The variable names a checkout of CMSIS-NN v7.0.0, which is built as all that is measured, with arm-none-eabi-gcc -O2,
and of which the linker keeps what is called. Networks run on QEMU, and their outputs are compared with the vectors.
--update writes benchmarks/results/cmsis_nn.json and the table of docs/performance.md, where the figures of our own
kernels are those that benchmarks/instructions.py has committed. Exit status 2 where something cannot be measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from counting.firmware import BuiltLibrary, MeasurementError, build_library, compiler_version
from counting.measure import Case, Result, measure
from counting.report import cmsis_nn, put_into_pages
from counting.results import CMSIS_NN, CMSIS_NN_CASES, Committed, load, save

VARIABLE = "MLFBUILD_CMSIS_NN_7"


def built(checkout: Path, cpu: str, folder: Path) -> BuiltLibrary:
    """Build the library at ``checkout`` for ``cpu``; raises ``MeasurementError``."""
    sources = sorted((checkout / "Source").rglob("*.c"))
    if not sources:
        raise MeasurementError(f"{VARIABLE}: {checkout} is no checkout of CMSIS-NN")
    return build_library(checkout / "Include", sources, cpu, folder)


def measured(checkout: Path) -> Iterator[tuple[Case, Result]]:
    """Yield each case with what it takes."""
    cases = sorted(CMSIS_NN_CASES, key=lambda case: case.cpu)
    for cpu, group in groupby(cases, key=lambda case: case.cpu):
        with tempfile.TemporaryDirectory() as name:
            library = built(checkout, cpu, Path(name, "cmsis-nn"))
            for case in group:
                yield case, measure(case, Path(name, str(case)), cmsis_nn=library)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the results into the repository")
    options = parser.parse_args()
    if not os.environ.get(VARIABLE):
        parser.error(f"set {VARIABLE} to a checkout of CMSIS-NN v7.0.0")
    try:
        results = dict(measured(Path(os.environ[VARIABLE])))
        version = compiler_version()
    except MeasurementError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    text = cmsis_nn(load().results, results)
    print(text, end="")
    if options.update:
        save(Committed(version, results), CMSIS_NN, CMSIS_NN_CASES)
        put_into_pages({"cmsis_nn": text})


if __name__ == "__main__":
    main()
