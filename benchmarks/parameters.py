"""Count what parameters that can be replaced cost beside linked constants.

    python benchmarks/parameters.py            measure all, print the table, compare with what is committed
    python benchmarks/parameters.py --update   and write benchmarks/results/parameters.json and docs/field-updates.md

Both images are for the Cortex-M4 at -O2 and keep dead channels. The one with a blob contains ``use_parameters``, and
linkers drop the other functions that are not called. Exit status 1 if a result differs from the committed one, 2 if a
network cannot be measured.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from counting.firmware import REPOSITORY, flash_of
from counting.measure import Case, measure
from counting.report import table
from counting.rows import measured_rows

COMMITTED = REPOSITORY / "benchmarks/results/parameters.json"
NETWORKS = ("kws", "ic", "vww", "ad")


@dataclass(frozen=True)
class Cost:
    """The speed and the size of a network with linked constants and with a blob."""

    network: str
    instructions: tuple[int, int]
    """Of an inference: (linked, blob)."""
    code: tuple[int, int]
    """Bytes of the image without the constants."""
    constants: tuple[int, int]
    """Bytes."""


def cost(network: str) -> Cost:
    """Measure ``network`` both ways; raises ``MeasurementError``."""
    case, kept = Case(network, "cortex-m4"), [f"-Wl,-u,mlf_{network}_use_parameters"]
    with tempfile.TemporaryDirectory() as folder:
        linked, blob = Path(folder) / "linked", Path(folder) / "blob"
        results = (
            measure(case, linked, options={"dead-channels": "keep"}),
            measure(case, blob, options={"parameters": "replaceable"}, flags=kept),
        )
        images = [flash_of(each / "model.elf") for each in (linked, blob)]
    counts, constants = ([each.instructions for each in results], [each.constants for each in results])
    code = [image - constant for image, constant in zip(images, constants, strict=True)]
    return Cost(network, (counts[0], counts[1]), (code[0], code[1]), (constants[0], constants[1]))


def blocks(results: Sequence[Cost]) -> Mapping[str, str]:
    """Return the block of docs/field-updates.md by name."""
    head = ["network", "instructions", "bytes of code and tables", "bytes of constants"]
    rows = [
        [
            each.network,
            f"{100 * (each.instructions[1] / each.instructions[0] - 1):+.2f} %",
            *map(_more, (each.code, each.constants)),
        ]
        for each in results
    ]
    return {"parameters": table(head, rows, right=(1, 2, 3))}


def _more(values: tuple[int, int]) -> str:
    return f"{values[1] - values[0]:+,}"


def load() -> list[Cost]:
    """Return the committed results."""
    rows = json.loads(COMMITTED.read_text())
    return [
        Cost(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}) for row in rows
    ]


def main() -> None:
    measured_rows(__doc__, cost, [(network,) for network in NETWORKS], blocks, load, COMMITTED)


if __name__ == "__main__":
    main()
