"""The contents of several memories, and the waits over the size of the fastest one, as steps of a chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mlfbuild.report.html import numbers
from mlfbuild.report.html.timeline import Tick
from mlfbuild.report.text.arenas import HEADER, memory_rows, more_text, place_rows, unit_of, waits_text

_TICKS = 8


@dataclass(frozen=True)
class CurveStep:
    """A range of sizes of the fastest memory with equal waits."""

    x: str
    width: str
    y: str
    height: str
    title: str


@dataclass(frozen=True)
class ArenasView:
    """The memories of a network."""

    waits: str
    more: str
    header: tuple[str, ...]
    memories: tuple[tuple[str, ...], ...]
    places: tuple[tuple[str, ...], ...]
    """Memory, offset, bytes, operators, accesses, saved, and names of tensors."""
    unit: str
    fastest: str
    steps: tuple[CurveStep, ...]
    """Empty if nothing waits with any size."""
    most: int
    """The waits at the upper end of the chart."""
    given: str
    """The position of the size that the model may take."""
    sizes: tuple[Tick, ...]


def arenas_view(network: Mapping[str, Any]) -> ArenasView | None:
    """Return the memories of a ``network`` of a report's JSON; ``None`` if it was planned for one."""
    arenas = network.get("arenas")
    if arenas is None:
        return None
    curve = arenas["curve"]
    limit = next((each["limit"] for each in arenas["memories"] if each["name"] == arenas["fastest"]), 0)
    # The last step is that of all larger sizes; a part of it is drawn.
    last = max((size for size, _ in curve), default=0)
    end = max(last + max(last // 16, 1), min(limit, 2 * last))
    most = max((waits for _, waits in curve), default=0)
    return ArenasView(
        waits_text(arenas),
        more_text(arenas),
        HEADER,
        tuple(memory_rows(network)),
        tuple(place_rows(network)),
        unit_of(arenas),
        arenas["fastest"],
        tuple(_steps(arenas, end, most)) if most else (),
        most,
        numbers.per_cent(min(limit, end), end),
        tuple(_ticks(end)),
    )


def _steps(arenas: Mapping[str, Any], end: int, most: int) -> Iterator[CurveStep]:
    unit = unit_of(arenas)
    for (size, waits), (behind, _) in pairwise([*arenas["curve"], (end, 0)]):
        title = f"from {numbers.size(size)} of {arenas['fastest']} on\n{waits:,} {unit} of waiting in a run"
        yield CurveStep(
            numbers.per_cent(size, end),
            numbers.per_cent(behind - size, end),
            numbers.per_cent(most - waits, most),
            numbers.per_cent(waits, most),
            title,
        )


def _ticks(end: int) -> Iterator[Tick]:
    step = 256
    while end / step > _TICKS:
        step *= 2
    for size in range(0, end, step):
        yield Tick(numbers.per_cent(size, end), f"{size / 1024:g} KiB" if size else "0")
