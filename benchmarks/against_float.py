"""Model the cycles of int8 and int16 networks beside the same networks in float32, on a part with a Cortex-M4.

    python benchmarks/against_float.py                       print the table
    python benchmarks/against_float.py --update              and write benchmarks/results and docs/performance.md
    python benchmarks/against_float.py --keep DIR            leave the networks below DIR, for cycles.py --model

`counting/float_twins.py` writes the float networks with random weights, and `mlfbuild quantize` quantises them, so that
the extra `quantize-onnx` must be installed. Figures are modelled (docs/latency.md), not measured; they repeat exactly.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from counting.cycles import PARTS, model_cycles
from counting.firmware import REPOSITORY, MeasurementError
from counting.float_twins import TWINS, write_twins
from counting.report import put_into_pages, table
from counting.results import save_rows

from mlfbuild.core import MlfError

COMMITTED = REPOSITORY / "benchmarks/results/against_float.json"
PART = "stm32l4r5"
INTEGERS = ("int8", "int16")


@dataclass(frozen=True)
class Twin:
    """One inference of a network with activations of ``type`` on ``PART``, code and weights in flash."""

    network: str
    type: str
    """float32, or one of ``INTEGERS``."""
    instructions: int
    cycles: int


def load() -> list[Twin]:
    """Return the committed figures."""
    return [Twin(**twin) for twin in json.loads(COMMITTED.read_text())]


def save(twins: Sequence[Twin]) -> None:
    """Write the figures and the table of docs/performance.md."""
    save_rows(twins, COMMITTED)
    put_into_pages(blocks(twins))


def modelled(network: str, keep: Path | None) -> list[Twin]:
    """Write the float ``network``, quantise it, and model each type."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = (keep or Path(temporary)) / network
        folder.mkdir(parents=True, exist_ok=True)
        twins = []
        for kind, file in write_twins(network, INTEGERS, folder).items():
            found = model_cycles(kind, PARTS[PART], file, folder=folder / kind)
            twins.append(Twin(network, kind, found.instructions, found.cycles.total))
    return twins


def blocks(twins: Sequence[Twin]) -> Mapping[str, str]:
    """Return the block of docs/performance.md by its name."""
    found = {(twin.network, twin.type): twin for twin in twins}
    head = ["network", "float32, M cycles"]
    head += [text for kind in INTEGERS for text in (f"{kind}, M cycles", "cycles", "instructions")]
    rows = []
    for network in dict.fromkeys(twin.network for twin in twins):
        real = found[network, "float32"]
        row = [network, f"{real.cycles / 1e6:.3f}"]
        for twin in (found[network, kind] for kind in INTEGERS):
            row += [f"{twin.cycles / 1e6:.3f}", f"{twin.cycles / real.cycles:.2f}"]
            row += [f"{twin.instructions / real.instructions:.2f}"]
        rows.append(row)
    return {"against_float": table(head, rows, right=range(1, len(head)))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=TWINS, default=list(TWINS))
    parser.add_argument("--update", action="store_true", help="write the results into the repository")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave networks, sources and images below this folder")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.update and options.networks != list(TWINS):
        parser.error("--update models all; omit --networks")
    try:
        with ProcessPoolExecutor(options.jobs) as pool:
            twins = [twin for found in pool.map(modelled, options.networks, repeat(options.keep)) for twin in found]
    except (MeasurementError, MlfError, OSError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    print(*blocks(twins).values(), sep="\n")
    if options.update:
        save(twins)


if __name__ == "__main__":
    main()
