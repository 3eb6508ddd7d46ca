"""The committed results: read, written, and compared with what is measured now."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from counting.firmware import GUARDED, REPOSITORY
from counting.measure import NETWORKS, Case, Result

COMMITTED = REPOSITORY / "benchmarks/results/counts.json"
UPDATE = "python benchmarks/instructions.py --update"

GROWTH = {"instructions": 0.01, "code": 0.01, "constants": 0.01, "arena": 0.0, "stack": 0.05}
"""The growth that is accepted, as a fraction of the committed figure."""

CASES = (
    *(Case(network, cpu) for network, cpu in product(NETWORKS, GUARDED)),
    *(
        Case(network, cpu, memory)
        for network, cpu, memory in product(NETWORKS, ("cortex-m4", "cortex-m55"), ("fastest", "smallest"))
        if not network.endswith("_f32")
    ),
    *(Case(network, "cortex-m0plus") for network in NETWORKS if not network.endswith("_f32")),
)
"""The cases that are measured and committed."""
Results = Mapping[Case, Result]


@dataclass(frozen=True)
class Committed:
    """The content of ``COMMITTED``."""

    compiler: str
    """The version of the C compiler whose code was counted."""
    results: Results


def load() -> Committed:
    """Return the committed results; raises ``ValueError`` if the file has another structure."""
    data = json.loads(COMMITTED.read_text())
    return Committed(data["compiler"], dict(_parsed(entry) for entry in data["results"]))


def _parsed(entry: dict[str, Any]) -> tuple[Case, Result]:
    case = Case(*(entry.pop(field.name) for field in fields(Case)))
    try:
        return case, Result(**entry)
    except TypeError as error:
        raise ValueError(f"{COMMITTED}: {case}: {error}; run {UPDATE}") from None


def save(committed: Committed, path: Path = COMMITTED) -> None:
    """Write the results of ``CASES``, one line each, so that a change of one is a change of one line."""
    entries = [json.dumps({**asdict(case), **asdict(committed.results[case])}) for case in CASES]
    lines = ",\n".join(f"    {entry}" for entry in entries)
    path.write_text(f'{{\n  "compiler": "{committed.compiler}",\n  "results": [\n{lines}\n  ]\n}}\n')


def save_rows(rows: Sequence[Any], path: Path) -> None:
    """Write dataclasses as a JSON list, one line each, so that a change of one is a change of one line."""
    lines = ",\n".join(f"  {json.dumps(asdict(row))}" for row in rows)
    path.write_text(f"[\n{lines}\n]\n")


def grown(case: Case, old: Result | None, new: Result) -> Iterator[str]:
    """Yield a line for each figure that is larger than ``GROWTH`` permits."""
    if old is None:
        yield f"{case}: has no committed counts; add them with `{UPDATE}`"
        return
    for figure, most in GROWTH.items():
        before, after = getattr(old, figure), getattr(new, figure)
        if after > before * (1 + most):
            change = f"+{100 * (after - before) / before:.2f} %" if before else "from nothing"
            yield (
                f"{case.network} on {case.cpu}, memory: {case.memory}: {figure} {before:,} -> {after:,} ({change}, at "
                f"most {100 * most:g} % unnoticed); where that is worth it, `{UPDATE}` commits the new figures"
            )
