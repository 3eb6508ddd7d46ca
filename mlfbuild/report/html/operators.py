"""The operators of a network as rows of a table and as columns of a chart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlfbuild.report.document.compare import Change
from mlfbuild.report.document.pairing import paired_operators
from mlfbuild.report.html import numbers
from mlfbuild.report.html.owners import BarSegment, bar
from mlfbuild.report.operators.cycles import CYCLE_KINDS, TimedPart
from mlfbuild.report.operators.operator_runs import total
from mlfbuild.report.sizes.owners import FLASH_KINDS

_Json = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """A number in the table; ``step`` is the length of its bar in per cent."""

    text: str
    step: int
    kind: str
    sign: str = ""
    """The sign of a difference, as ``numbers.sign``."""
    parts: tuple[BarSegment, ...] = ()
    """The parts of its bar, if it is split into kinds; ``step`` is 0 then."""


_Column = Callable[[_Json, _Json | None], Cell]


@dataclass(frozen=True)
class NodeFacts:
    """A node of the model's file: names and values of its attributes, and the quantisation of its tensors."""

    title: str
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class OperatorRow:
    """An operator."""

    index: int
    operator: str
    name: str
    output: str
    """The shapes of its outputs."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """Numbers of the tensors that it writes; ``inputs`` are those that it reads."""
    cells: tuple[Cell, ...]
    """In the order of ``headings``."""
    title: str
    nodes: tuple[NodeFacts, ...]
    """The nodes of the model's file that it computes; empty if they are unknown."""


@dataclass(frozen=True)
class Columns:
    """A chart with a column for each operator and, if known, its lower bound."""

    title: str
    note: str
    """Words after the title: the microcontroller with the stated error, and the meaning of the line in columns."""
    most: int
    kinds: tuple[tuple[str, str], ...]
    """Kinds of the segments, with their names in the legend; one kind needs no legend."""
    bars: tuple[tuple[tuple[ColumnSegment, ...], str | None], ...]
    """The segments of each column, and the position of the lower bound from the top."""


@dataclass(frozen=True)
class ColumnSegment:
    """A segment of a column."""

    kind: str
    y: str
    height: str


def headings(network: _Json, old: _Json | None) -> tuple[str, ...]:
    """Return the names of the columns of ``rows``."""
    return tuple(_columns(network, compared=old is not None))


def _columns(network: _Json, *, compared: bool) -> dict[str, _Column]:
    """Return the columns of the table by their headings: functions of an operator and its earlier figures."""
    listed, part, measured = network["operators"], modelled(network), measured_heading(network)
    keys = ("macs", *FLASH_KINDS, "instructions", "cycles")
    # Bars are relative to the largest number of their column.
    most = {key: max((each.get(key) or 0 for each in listed), default=0) for key in keys}

    def number(key: str, scale: str = "") -> _Column:
        return lambda each, _: Cell(numbers.count(each.get(key)), numbers.step(each.get(key), most[scale or key]), key)

    columns = {"MACs": number("macs"), **{kind: number(kind) for kind in FLASH_KINDS}}
    if compared:
        columns["flash ±"] = _difference(flash_of)
    if counted(network):
        columns["instructions"] = number("instructions")
        columns["instr. / MAC"] = _per_mac
        columns["lower bound"] = number("bound", "instructions")
        if compared:
            columns["instructions ±"] = _difference(lambda each: each.get("instructions"))
    if part is not None:
        columns["cycles"] = lambda each, _: Cell(
            numbers.count(each.get("cycles")), 0, "cycles",
            parts=split_bar(each.get("cycles_by_kind", {}), most["cycles"]),
        )  # fmt: skip
        columns["ms"] = lambda each, _: Cell(
            part.milliseconds(each["cycles"]) if each.get("cycles") is not None else numbers.NONE, 0, "ms"
        )
        if compared:
            columns["cycles ±"] = _difference(lambda each: each.get("cycles"))
    if measured:
        columns[measured] = lambda each, _: Cell(
            numbers.count((each.get("measured") or {}).get("median")), 0, "measured"
        )
    return columns


def _per_mac(operator: _Json, _old: _Json | None) -> Cell:
    done, macs = operator.get("instructions"), operator.get("macs")
    return Cell(numbers.ratio(done / macs if done is not None and macs else None), 0, "ratio")


def _difference(figure: Callable[[_Json], int | None]) -> _Column:
    """Return a column with the changes of a figure."""

    def cell(operator: _Json, old: _Json | None) -> Cell:
        # An empty dictionary: there was an operator, but its part of a fused one is unknown; ``None``: it is new.
        now, before = figure(operator), figure(old) if old else None
        if now is None or (old is not None and before is None):
            return Cell(numbers.NONE, 0, "change")
        change = Change(before, now)
        text, sign = ("new", "more") if old is None else (numbers.signed(change.more), numbers.sign(change))
        return Cell(text, 0, "change", sign)

    return cell


def measured_heading(network: _Json) -> str:
    """Return the heading of the cycles that a device measured, the median of its runs; empty if none did."""
    found = (network.get("profile") or {}).get("measured")
    return "" if found is None else "emulated ticks" if found["emulated"] else "measured cycles"


def modelled(network: _Json) -> TimedPart | None:
    """Return the microcontroller whose cycles were modelled; ``None`` if they were not."""
    found = (network.get("profile") or {}).get("modelled")
    return None if found is None else TimedPart(found["mcu"], found["clock"], found["error"])


def counted(network: _Json) -> bool:
    """Return whether the instructions of a network were counted."""
    return any(operator.get("instructions") is not None for operator in network["operators"])


def rows(network: _Json, old: _Json | None) -> tuple[OperatorRow, ...]:
    """Return the operators, with differences from those in ``old``.

    The cells of each row are in the columns of ``headings``; bars are relative to the largest number of their column.
    """
    operators, tensors = network["operators"], network["tensors"]
    # Without another report there are no columns of differences, so these values are not used.
    before = earlier(operators, old["operators"]) if old else [None] * len(operators)
    columns = _columns(network, compared=old is not None).values()
    return tuple(
        OperatorRow(
            index,
            operator["operator"],
            operator["name"],
            shapes(operator["outputs"], tensors),
            known(operator["inputs"], tensors),
            known(operator["outputs"], tensors),
            tuple(cell(operator, before[index]) for cell in columns),
            operator_title(index, operator, tensors),
            tuple(NodeFacts(node["operator"], tuple(_facts(node))) for node in operator.get("nodes", ())),
        )
        for index, operator in enumerate(operators)
    )


def _facts(node: _Json) -> Iterator[tuple[str, str]]:
    """Yield attributes, such as the kernel, and the scale and zero point of each tensor."""
    for name, value in node["attributes"].items():
        yield name.replace("_", " "), _padding(value) if name == "padding" else numbers.value(value)
    for tensor in node["tensors"]:
        quantized = ""
        if "scale" in tensor:
            channels = tensor.get("channels", 1)
            per = f" ({channels} channels)" if channels > 1 else ""
            scale, zero = numbers.span(tensor["scale"]), numbers.span(tensor["zero_point"])
            quantized = f", scale {scale}{per}, zero point {zero}"
        yield tensor["role"], f"{tensor['dtype']}{quantized}"


def _padding(value: Any) -> str:
    """Return the padding of a window: a number if it is the same on all sides."""
    # Reports are not trusted, and padding of other operators has other forms.
    try:
        (top, bottom), (left, right) = value
    except (TypeError, ValueError):
        return numbers.value(value)
    if top == bottom == left == right:
        return numbers.value(top)
    named = {"top": top, "bottom": bottom, "left": left, "right": right}
    return ", ".join(f"{name} {numbers.value(size)}" for name, size in named.items())


def earlier(now: Sequence[_Json], before: Sequence[_Json]) -> list[_Json | None]:
    """Return the earlier figures of each operator, ``None`` if it is new; those that it fuses are added up.

    They are empty, because they are unknown, for parts of an operator that was fused before.
    """
    found: dict[int, _Json | None] = {}
    for new, old in paired_operators(now, before):
        # If one operator of the old report became several, its bytes cannot be divided among them.
        figures = None if not old else _together(old) if len(new) == 1 else {}
        found.update(dict.fromkeys(map(id, new), figures))
    return [found[id(operator)] for operator in now]


def _together(operators: Sequence[_Json]) -> _Json:
    sizes = {kind: sum(operator[kind] for operator in operators) for kind in FLASH_KINDS}
    cycles = total([each.get("cycles") for each in operators])
    instructions = total([each.get("instructions") for each in operators])
    return {**sizes, "instructions": instructions, **({} if cycles is None else {"cycles": cycles})}


def flash_of(operator: _Json) -> int:
    """Return the bytes of flash of an operator."""
    return sum(operator[kind] for kind in FLASH_KINDS)


def split_bar(kinds: Mapping[str, int], whole: int) -> tuple[BarSegment, ...]:
    """Return the segments of a bar of cycles; ``whole`` is that of full length."""
    # With the largest operator as the limit, all bars of the column have one scale.
    return bar("", "", kinds, whole).parts


def known(indices: Sequence[int], tensors: Sequence[Any]) -> tuple[int, ...]:
    """Return the ``indices`` that exist.

    Reports are not trusted: an index that leads nowhere is left out, so that the page can still show the rest.
    """
    return tuple(index for index in indices if 0 <= index < len(tensors))


def shapes(indices: Sequence[int], tensors: Sequence[_Json]) -> str:
    """Return the shapes of some tensors."""
    return ", ".join(numbers.shape(tensors[index]["shape"]) for index in known(indices, tensors))


def operator_title(index: int, operator: _Json, tensors: Sequence[_Json]) -> str:
    """Return the tip of an operator: its type, and a line for each fact."""
    lines = [f"{index} {operator['operator']}", operator["name"]]
    if operator["function"] and operator["function"] != operator["name"]:
        lines.append(operator["function"])
    # Weights are inputs as well, and their shapes would hide that of the data.
    moving = [index for index in known(operator["inputs"], tensors) if tensors[index]["memory"] != "constant"]
    lines.append(f"{shapes(moving, tensors)} to {shapes(operator['outputs'], tensors)}")
    lines += [
        f"{numbers.count(operator[key])} {name}"
        for key, name in (("macs", "MACs"), ("instructions", "instructions"), ("bound", "at least"))
        if operator.get(key) is not None
    ]
    if operator.get("cycles"):
        by_kind = operator["cycles_by_kind"].items()
        split = ", ".join(f"{numbers.share(each, operator['cycles'])} {CYCLE_KINDS[kind]}" for kind, each in by_kind)
        lines.append(f"{operator['cycles']:,} cycles: {split}")
    if operator.get("measured"):
        spread = operator["measured"]
        lines.append(f"on the device: {spread['min']:,} to {spread['max']:,}, median {spread['median']:,}")
    flash = ", ".join(f"{operator[kind]:,} {kind}" for kind in FLASH_KINDS if operator[kind])
    return "\n".join([*lines, *([f"flash: {flash}"] if flash else [])])


def columns(network: _Json) -> Columns | None:
    """Return the chart of cycles, of instructions or of MACs, whichever is known; ``None`` if it is empty."""
    part = modelled(network)
    # The most exact measure of time that the report has; MACs are known without a run.
    key = "cycles" if part else "instructions" if counted(network) else "macs"
    values = [operator.get(key) or 0 for operator in network["operators"]]
    # The bound is a number of instructions, so it has no place in a chart of cycles or MACs.
    bounds = [operator.get("bound") if key == "instructions" else None for operator in network["operators"]]
    most = max([0, *values, *(bound or 0 for bound in bounds)])
    if not most:
        return None
    bars = tuple(
        (
            tuple(_segments(operator.get("cycles_by_kind", {}) if part else {key: operator.get(key) or 0}, most)),
            None if bound is None else numbers.per_cent(most - bound, most),
        )
        for operator, bound in zip(network["operators"], bounds, strict=True)
    )
    note = f" on {part.title}, {part.exactness}" if part else ""
    note += "; the line is the lower bound" if key == "instructions" else ""
    return Columns("MACs" if key == "macs" else key, note, most, tuple(CYCLE_KINDS.items()) if part else (), bars)


def _segments(kinds: Mapping[str, int], most: int) -> Iterator[ColumnSegment]:
    """Yield the segments of a column, the first at the bottom."""
    below = 0
    for kind, value in kinds.items():
        below += value
        # SVG counts from the top, so the first segment begins furthest from it.
        yield ColumnSegment(kind, numbers.per_cent(most - below, most), numbers.per_cent(value, most))
