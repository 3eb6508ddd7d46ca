"""Memory over time: the position of each tensor in the arena, by operator.

Coordinates are per cent of the drawing, so that it fits any width without a script.
Across are operators, upwards bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlfbuild.report.html import numbers

OUTSIDE = ("input", "output", "state")
"""Memories of tensors that live outside the arena."""
_ELSEWHERE = "elsewhere"
"""The memory of tensors in another arena than that of the chart."""
_TICKS = 5
_THINNEST = 120
"""The minimum height of a rectangle is the arena divided by this."""


@dataclass(frozen=True)
class Mark:
    """A rectangle of the chart."""

    kind: str
    """``arena``, ``scratch``, or one of ``OUTSIDE``."""
    x: str
    y: str
    """From the top."""
    width: str
    height: str
    label: str
    """Empty if it does not fit."""
    title: str
    """A name, and a line for each fact."""
    tensor: int | None
    """The number of the tensor; ``None`` for scratch memory."""
    operator: int | None
    """The operator of scratch memory."""
    clear: float = 1.0
    """The part of its width that the label may take before another rectangle covers it."""


@dataclass(frozen=True)
class Tick:
    """A label on an axis."""

    at: str
    text: str


@dataclass(frozen=True)
class Column:
    """The column of an operator."""

    x: str
    width: str
    live: int
    """Bytes of the arena in use while it runs."""


@dataclass(frozen=True)
class Timeline:
    """The chart of a network, or of its arena in one of several memories."""

    memory: str
    """The name of that memory; empty if there is one arena."""
    arena: int
    peak: int
    peak_at: int
    """The number of the operator at peak use, from 0."""
    marks: tuple[Mark, ...]
    outside: tuple[Mark, ...]
    """A row for each tensor."""
    columns: tuple[Column, ...]
    """A column for each operator, in order of execution."""
    bytes: tuple[Tick, ...]
    """Labels of the axis of the arena."""
    operators: tuple[Tick, ...]
    """Labels of the axis of operators."""

    @property
    def kinds(self) -> list[str]:
        """The kinds of its rectangles."""
        return list(dict.fromkeys(mark.kind for mark in (*self.marks, *self.outside)))


def timelines(network: Mapping[str, Any]) -> tuple[Timeline, ...]:
    """Return the charts of a ``network`` of a report's JSON: of each memory with an arena, or of its only arena."""
    memories = network.get("arenas", {"memories": ()})["memories"]
    charts = tuple(timeline(_within(network, each), each["name"]) for each in memories if each["size"])
    return charts or (timeline(network),)


def _within(network: Mapping[str, Any], memory: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``network`` with the arena in ``memory`` alone; tensors in other arenas keep their numbers."""
    start, end = memory["base"], memory["base"] + memory["size"]

    def moved(placed: Mapping[str, Any], **elsewhere: Any) -> dict[str, Any]:
        inside = start <= placed["offset"] < end
        return {**placed, "offset": placed["offset"] - start} if inside else {**placed, **elsewhere}

    tensors = [
        moved(each, memory=_ELSEWHERE) if each["memory"] == "arena" and each["offset"] is not None else each
        for each in network["tensors"]
    ]
    operators = []
    for each in network["operators"]:
        scratch = moved(each["scratch"], size=0) if each.get("scratch") else None
        operators.append({**each, "scratch": scratch if scratch and scratch["size"] else None})
    return {**network, "arena": memory["size"], "tensors": tensors, "operators": operators}


def timeline(network: Mapping[str, Any], memory: str = "") -> Timeline:
    """Return the chart of a ``network`` of a report's JSON, which is called after the ``memory`` of its arena.

    Lifetimes and offsets that are not possible are limited to the drawing.
    """
    operators, tensors = network["operators"], network["tensors"]
    spans = [_clipped(tensor, len(operators)) for tensor in tensors]
    used = list(_uses(network, spans))
    # A report is not trusted: a tensor above the stated arena must not leave the drawing.
    arena = max([network["arena"], *(stop for _, (_, stop) in used)])
    count = len(operators)
    # Tensors may share bytes, for example after a reshape.
    live = [_union([place for (first, last), place in used if first <= index <= last]) for index in range(count)]
    # The first operator with the peak: -index breaks ties.
    peak_at = max(range(count), key=lambda index: (live[index], -index), default=0)
    lives = list(enumerate(zip(tensors, spans, strict=True)))
    marks = [
        _mark(index, tensor, span, count, arena, _clear(index, tensors, spans), memory)
        for index, (tensor, span) in lives
        if tensor["memory"] == "arena"
    ]
    marks += [
        _scratch(index, operator, count, arena) for index, operator in enumerate(operators) if operator.get("scratch")
    ]
    return Timeline(
        memory,
        arena,
        live[peak_at] if live else 0,
        peak_at,
        tuple(marks),
        tuple(
            _row(index, tensor, span, count)
            for kind in OUTSIDE
            for index, (tensor, span) in lives
            if tensor["memory"] == kind
        ),
        tuple(
            Column(numbers.per_cent(index, count), numbers.per_cent(1, count), taken)
            for index, taken in enumerate(live)
        ),
        _byte_ticks(arena),
        _operator_ticks(count),
    )


def _clipped(tensor: Mapping[str, Any], count: int) -> tuple[int, int]:
    """Return the first and the last operator of a tensor's life, limited to existing ones."""
    # A network without operators still gets a valid range, so that nothing divides by zero.
    first = min(max(tensor["first"], 0), max(count - 1, 0))
    return first, min(max(tensor["last"], first), max(count - 1, 0))


def _uses(
    network: Mapping[str, Any], spans: Iterable[tuple[int, int]]
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield (first, last) operator and (start, end) in the arena of each tensor and scratch buffer there."""
    for tensor, span in zip(network["tensors"], spans, strict=True):
        if tensor["memory"] == "arena" and tensor["offset"] is not None:
            yield span, (tensor["offset"], tensor["offset"] + tensor["size"])
    for index, operator in enumerate(network["operators"]):
        if scratch := operator.get("scratch"):
            yield (index, index), (scratch["offset"], scratch["offset"] + scratch["size"])


def _union(places: list[tuple[int, int]]) -> int:
    total = end = 0
    # Not the sum: a view has the bytes of another tensor.
    for start, stop in sorted(places):
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


def _band(offset: int, size: int, arena: int) -> tuple[str, str]:
    """Return top and height of a range of the arena, high enough to be visible and to click."""
    # A tensor of a few bytes in a large arena would otherwise be thinner than a pixel.
    high = max(size, arena // _THINNEST)
    return numbers.per_cent(max(0, arena - offset - high), arena), numbers.per_cent(high, arena)


def _clear(index: int, tensors: Sequence[Mapping[str, Any]], spans: Sequence[tuple[int, int]]) -> int:
    """Return the number of operators of its life before another tensor covers its middle, where the label is."""
    first, last = spans[index]
    middle = (tensors[index]["offset"] or 0) + tensors[index]["size"] // 2
    covered = (
        start
        for (start, end), other in zip(spans[index + 1 :], tensors[index + 1 :], strict=True)
        # Later tensors are drawn above earlier ones, so only they can cover the label.
        if start <= last and end >= first and other["memory"] == "arena" and other["offset"] is not None
        if other["offset"] <= middle < other["offset"] + other["size"]
    )
    return max(0, min([last + 1, *covered]) - first)


def _mark(
    index: int, tensor: Mapping[str, Any], span: tuple[int, int], count: int, arena: int, clear: int, memory: str
) -> Mark:
    offset = tensor["offset"] or 0
    length = span[1] + 1 - span[0]
    # A sixteenth of the drawing is about the height and width of a label.
    fits = tensor["size"] * 16 >= arena and clear * 16 >= count
    label = numbers.shape(tensor["shape"]) if fits else ""
    box = _box(span, count, *_band(offset, tensor["size"], arena))
    title = tensor_title(tensor, span, memory or "the arena")
    return Mark("arena", *box, label, title, index, None, round(clear / length, 3))


def _scratch(index: int, operator: Mapping[str, Any], count: int, arena: int) -> Mark:
    offset, size = operator["scratch"]["offset"], operator["scratch"]["size"]
    title = (
        f"Scratch of {operator['operator']}\n{operator['name']}\n{numbers.size(size)} at {offset:,}\noperator {index}"
    )
    return Mark("scratch", *_box((index, index), count, *_band(offset, size, arena)), "", title, None, index)


def _box(span: tuple[int, int], count: int, top: str, height: str) -> tuple[str, str, str, str]:
    """Return x, y, width and height of a rectangle over the operators of ``span``."""
    first, last = span
    return numbers.per_cent(first, count), top, numbers.per_cent(last + 1 - first, count), height


def _row(index: int, tensor: Mapping[str, Any], span: tuple[int, int], count: int) -> Mark:
    first, last = span
    # A label needs about a sixth of the width.
    label = f"{tensor['memory']} {numbers.shape(tensor['shape'])}" if (last + 1 - first) * 6 >= count else ""
    box = _box(span, count, "0", "100%")
    return Mark(tensor["memory"], *box, label, tensor_title(tensor, span), index, None)


def tensor_title(tensor: Mapping[str, Any], span: tuple[int, int] | None = None, arena: str = "the arena") -> str:
    """Return the tip of a tensor: its name, and a line for each fact.

    ``span`` has the first and last operator of its life, if they were limited; without it, they are those of the
    report.
    """
    first, last = span or (tensor["first"], tensor["last"])
    lines = [tensor["name"], f"{numbers.shape(tensor['shape'])} {tensor['dtype']}", numbers.size(tensor["size"])]
    if tensor["memory"] == "arena" and tensor["offset"] is not None:
        lines.append(f"in {arena} at {tensor['offset']:,} to {tensor['offset'] + tensor['size']:,}")
    else:
        lines.append(tensor["memory"])
    if tensor["memory"] != "constant":
        lines.append(f"operator {first}" if first == last else f"operators {first} to {last}")
    if "accesses" in tensor:
        lines.append(f"{tensor['accesses']:,} accesses in a run, which wait {tensor.get('saved', 0):,} less")
    return "\n".join(lines)


def _byte_ticks(arena: int) -> tuple[Tick, ...]:
    step = 1
    # By doubling, so that ticks are at powers of two, as sizes of memories are.
    while arena / step > _TICKS:
        step *= 2
    unit, name = (1024, "KiB") if arena >= 2 * 1024 and step >= 512 else (1, "B")
    # The last tick is the arena's own size; one close below it would overlap its label.
    values = [value for value in range(0, arena, step) if value <= arena - step // 3] + [arena]
    return tuple(
        Tick(numbers.per_cent(arena - value, arena), f"{round(value / unit, 1):g} {name}" if value else "0")
        for value in values
    )


def _operator_ticks(count: int) -> tuple[Tick, ...]:
    # Steps of 1, 2 and 5, so that at most 16 numbers are on the axis.
    step = next(size * 10**power for power in range(9) for size in (1, 2, 5) if count <= 16 * size * 10**power)
    return tuple(Tick(numbers.per_cent(2 * index + 1, 2 * count), str(index)) for index in range(0, count, step))
