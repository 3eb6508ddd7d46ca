"""Model the cycles of one inference of the MLPerf Tiny networks, or of any model, on microcontrollers.

    python benchmarks/cycles.py                                      all int8 networks on the M4 without wait states
    python benchmarks/cycles.py --networks kws ad --parts m4-zero stm32l4r5
    python benchmarks/cycles.py --networks kws --split               by operator: arithmetic, loads, branches, waiting
    python benchmarks/cycles.py --networks kws --profile 20          by C function
    python benchmarks/cycles.py --networks kws --listing mlf_conv    instructions of functions with their cycles
    python benchmarks/cycles.py --model FILE.tflite --parts m0plus-zero

Parts called <core>-zero have memories without wait states. Each network is compiled for the part's core, built with
arm-none-eabi-gcc -O2, and run on QEMU; its outputs are compared with the vectors of TensorFlow Lite Micro. Figures are
modelled (docs/latency.md), not measured; they repeat exactly. Exit status 2 if a network cannot be modelled.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from counting.cycles import PARTS, Modelled, model_cycles
from counting.firmware import MeasurementError
from counting.measure import NETWORKS

from mlfbuild.core import MlfError
from mlfbuild.timing import CycleCount

HEAD = f"{'network, part':52} {'instructions':>12} {'cycles':>12}" + "".join(
    f"{name:>8}" for name in ("arith.", "memory", "branch", "waits")
)
_INT8 = [network for network in NETWORKS if not network.endswith("_f32")]


@dataclass(frozen=True)
class Work:
    """One row of the table."""

    network: str
    part: str
    model: Path | None = None


def in_folder(work: Work, options: argparse.Namespace) -> Modelled:
    """Model ``work`` in a new folder, which is below ``--keep`` or deleted afterwards."""
    chosen = {"memory": options.memory}
    run = partial(model_cycles, work.network, PARTS[work.part], work.model, flags=options.flags, options=chosen)
    if options.keep is not None:
        return run(folder=options.keep / f"{work.network}-{work.part}")
    with tempfile.TemporaryDirectory() as folder:
        return run(folder=Path(folder))


def row(name: str, instructions: int, cycles: CycleCount) -> str:
    split = (cycles.arithmetic, cycles.memory, cycles.branches, cycles.waiting)
    shares = (f"{100 * each / max(cycles.total, 1):5.1f} %" for each in split)
    return f"{name:52} {instructions:>12,} {cycles.total:>12,} " + " ".join(shares)


def views(found: Modelled, options: argparse.Namespace) -> Iterator[str]:
    """Yield the tables that the options ask for."""
    if options.split:
        yield from (row(f"  {name[:50]}", instructions, cycles) for name, instructions, cycles in found.operators)
    if options.profile:
        yield from (row(f"  {name[:50]}", *rest) for name, *rest in found.functions[: options.profile])
    for name in options.listing or ():
        yield from found.listing(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--networks", nargs="+", choices=NETWORKS, default=_INT8, metavar="NAME", help=", ".join(NETWORKS)
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["m4-zero"], metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--model", type=Path, metavar="FILE", help="a model file instead of networks; outputs are not checked"
    )
    parser.add_argument("--memory", default="balanced", help="value of the option memory, default balanced")
    parser.add_argument("--split", action="store_true", help="print cycles by operator")
    parser.add_argument(
        "--profile", type=int, nargs="?", const=15, default=0, metavar="N", help="print the N largest functions"
    )
    parser.add_argument(
        "--listing", nargs="+", metavar="FUNCTION", help="print blocks of functions that begin like this"
    )
    parser.add_argument("--flags", nargs="+", default=[], metavar="FLAG", help="further flags for the C compiler")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave sources and images below this folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    networks: Sequence[str] = [options.model.stem] if options.model else options.networks
    works = [Work(network, part, options.model) for network in networks for part in options.parts]
    print(HEAD)
    try:
        with ProcessPoolExecutor(min(options.jobs, len(works))) as pool:
            for work, found in zip(works, pool.map(partial(in_folder, options=options), works), strict=True):
                print(row(f"{work.network}, {work.part}", found.instructions, found.cycles), flush=True)
                print(
                    *views(found, options),
                    sep="\n",
                    end="\n" if options.split or options.profile or options.listing else "",
                )
    except (MeasurementError, MlfError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
