"""Measure what stands around the kernels of an archive: the executor that mlfbuild makes, beside TVM's own.

    python benchmarks/executors.py [--cpus cortex-m4 ...] [--update]

Builds kws of ../shared beside the repository, as TVM exported it for its graph executor and for AOT and as our compiler
does, with arm-none-eabi-gcc -O2, runs it on QEMU, compares outputs with the vectors, and prints one table; --update
puts it into benchmarks/evidence.md. TVM's own figures are those of ../shared/reference/performance.md. Counts repeat
exactly. Exit status 2 where something cannot be measured.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from counting.executors import Footprint, footprint
from counting.firmware import BOARDS, SHARED, MeasurementError
from counting.report import put_into_pages, table

from mlfbuild import open_archive
from mlfbuild.library import CompileRequest, Library
from mlfbuild.native import NATIVE
from mlfbuild.targets import CPUS

_HEAD = ("kws", "core", "executor", "instructions", "executor's code, tables", "flash", "RAM", "stack")
_PEERS = (
    ("TVM 0.14 graph", "M4", "TVM's", 21_903_070, "", 113_676, 343_088, 688),
    ("TVM 0.14 AOT", "M4", "TVM's", 21_925_065, "", 60_630, 56_800, 120),
)


def subjects(cpu: str) -> Iterator[tuple[str, Library, Path]]:
    """Yield name, library and vectors of what is measured."""
    for name in ("graph", "aotc"):
        path = SHARED / f"archives/kws_int8-{name}"
        yield (
            f"TVM 0.14 {'graph' if name == 'graph' else 'AOT'}",
            open_archive(path.with_suffix(".tar")),
            path.with_suffix(".npz"),
        )
    for executor in ("graph", "aot"):
        request = CompileRequest("kws", SHARED / "models/kws_int8.tflite", CPUS[cpu], executor)
        yield (
            f"mlfbuild {'graph' if executor == 'graph' else 'AOT'}",
            NATIVE.compile(request),
            SHARED / "golden/kws_int8.npz",
        )


def row(name: str, cpu: str, found: Footprint) -> list[str]:
    """Return the row of the table."""
    around = found.executor + found.tables
    flash = found.kernels + around + found.weights
    figures = (found.instructions, around, flash, found.ram + found.io, found.stack)
    return [name, cpu.removeprefix("cortex-").upper(), "mlfbuild", *(f"{figure:,}" for figure in figures)]


def measured(cpu: str) -> Iterator[list[str]]:
    """Yield the rows of ``cpu``."""
    for name, library, vectors in subjects(cpu):
        with tempfile.TemporaryDirectory() as folder:
            yield row(name, cpu, footprint(library, vectors, cpu, Path(folder)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpus", nargs="+", choices=BOARDS, default=["cortex-m4"])
    parser.add_argument("--update", action="store_true", help="write the table into the repository")
    options = parser.parse_args()
    rows = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in peer] for peer in _PEERS]
    try:
        rows += [found for cpu in options.cpus for found in measured(cpu)]
    except MeasurementError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    text = table(_HEAD, rows, right=range(3, len(_HEAD)))
    print(text, end="")
    if options.update:
        put_into_pages({"executors": text})


if __name__ == "__main__":
    main()
