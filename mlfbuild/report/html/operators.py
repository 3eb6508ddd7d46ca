"""The operators of a network as rows of a table and as columns of a chart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlfbuild.report.document.compare import Change
from mlfbuild.report.document.pairing import paired_operators
from mlfbuild.report.html import numbers
from mlfbuild.report.html.owners import BarSegment, bar
from mlfbuild.report.operators.cycles import CYCLE_KINDS, TimedPart
from mlfbuild.report.operators.operator_runs import total
from mlfbuild.report.sizes.owners import FLASH_KINDS


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
    function: str
    output: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    cells: tuple[Cell, ...]
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


def headings(network: Mapping[str, Any], old: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the names of the columns of ``rows``."""
    names = ["MACs", *FLASH_KINDS]
    if old is not None:
        names.append("flash ±")
    if counted(network):
        names += ["instructions", "instr. / MAC", "lower bound"]
        if old is not None:
            names.append("instructions ±")
    if modelled(network):
        names += ["cycles", "ms"]
        if old is not None:
            names.append("cycles ±")
    measured = measured_heading(network)
    return (*names, measured) if measured else tuple(names)


def measured_heading(network: Mapping[str, Any]) -> str:
    """Return the heading of the cycles that a device measured, the median of its runs; empty if none did."""
    found = (network.get("profile") or {}).get("measured")
    return "" if found is None else "emulated ticks" if found["emulated"] else "measured cycles"


def modelled(network: Mapping[str, Any]) -> TimedPart | None:
    """Return the microcontroller whose cycles were modelled; ``None`` if they were not."""
    found = (network.get("profile") or {}).get("modelled")
    return None if found is None else TimedPart(found["mcu"], found["clock"], found["error"])


def counted(network: Mapping[str, Any]) -> bool:
    """Return whether the instructions of a network were counted."""
    return any(operator.get("instructions") is not None for operator in network["operators"])


def rows(network: Mapping[str, Any], old: Mapping[str, Any] | None) -> tuple[OperatorRow, ...]:
    """Return the operators, with differences from those in ``old``.

    The cells of each row are in the columns of ``headings``; bars are relative to the largest number of their column.
    """
    operators, tensors = network["operators"], network["tensors"]
    # Without another report there are no columns of differences, so these values are not used.
    before = earlier(operators, old["operators"]) if old else [None] * len(operators)
    most = {
        key: max((operator.get(key) or 0 for operator in operators), default=0)
        for key in ("macs", *FLASH_KINDS, "instructions", "cycles")
    }
    profile, part = counted(network), modelled(network)
    return tuple(
        OperatorRow(
            index,
            operator["operator"],
            operator["name"],
            operator["function"],
            shapes(operator["outputs"], tensors),
            known(operator["inputs"], tensors),
            known(operator["outputs"], tensors),
            (
                *_cells(operator, before[index], most, profile=profile, compared=old is not None),
                *(_cycle_cells(operator, before[index], most, part, compared=old is not None) if part else ()),
                *(_measured_cells(operator) if measured_heading(network) else ()),
            ),
            operator_title(index, operator, tensors),
            tuple(NodeFacts(node["operator"], tuple(_facts(node))) for node in operator.get("nodes", ())),
        )
        for index, operator in enumerate(operators)
    )


def _facts(node: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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


def earlier(now: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
    """Return the earlier figures of each operator, ``None`` if it is new; those that it fuses are added up.

    They are empty, because they are unknown, for parts of an operator that was fused before.
    """
    found: dict[int, Mapping[str, Any] | None] = {}
    for new, old in paired_operators(now, before):
        # If one operator of the old report became several, its bytes cannot be divided among them.
        figures = None if not old else _together(old) if len(new) == 1 else {}
        found.update(dict.fromkeys(map(id, new), figures))
    return [found[id(operator)] for operator in now]


def _together(operators: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    sizes = {kind: sum(operator[kind] for operator in operators) for kind in FLASH_KINDS}
    cycles = total([each.get("cycles") for each in operators])
    instructions = total([each.get("instructions") for each in operators])
    return {**sizes, "instructions": instructions, **({} if cycles is None else {"cycles": cycles})}


def flash_of(operator: Mapping[str, Any] | None) -> int | None:
    """Return the bytes of flash of an operator."""
    return None if operator is None else sum(operator[kind] for kind in FLASH_KINDS)


def _cells(
    operator: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    most: Mapping[str, int],
    *,
    profile: bool,
    compared: bool,
) -> Iterator[Cell]:
    for key in ("macs", *FLASH_KINDS):
        yield Cell(numbers.count(operator.get(key)), numbers.step(operator.get(key), most[key]), key)
    unknown = Cell(numbers.NONE, 0, "change")
    if compared:
        change = Change(flash_of(old or None), flash_of(operator))
        # An empty dictionary: there was an operator, but its part of a fused one is unknown; ``None``: it is new.
        yield unknown if old == {} else _change(change, added=old is None)
    if profile:
        done, macs, bound = (operator.get(key) for key in ("instructions", "macs", "bound"))
        yield Cell(numbers.count(done), numbers.step(done, most["instructions"]), "instructions")
        yield Cell(numbers.ratio(done / macs if done is not None and macs else None), 0, "ratio")
        yield Cell(numbers.count(bound), numbers.step(bound, most["instructions"]), "bound")
        if compared:
            counted_before = (old or {}).get("instructions")
            known = done is not None and (old is None or counted_before is not None)
            change = Change(counted_before, done)
            yield _change(change, added=old is None) if known else unknown


def _cycle_cells(
    operator: Mapping[str, Any],
    old: Mapping[str, Any] | None,
    most: Mapping[str, int],
    part: TimedPart,
    *,
    compared: bool,
) -> Iterator[Cell]:
    cycles = operator.get("cycles")
    split = split_bar(operator.get("cycles_by_kind", {}), most["cycles"])
    yield Cell(numbers.count(cycles), 0, "cycles", parts=split)
    yield Cell(numbers.NONE if cycles is None else part.milliseconds(cycles), 0, "ms")
    if compared:
        before = (old or {}).get("cycles")
        known = cycles is not None and (old is None or before is not None)
        yield _change(Change(before, cycles), added=old is None) if known else Cell(numbers.NONE, 0, "change")


def _measured_cells(operator: Mapping[str, Any]) -> Iterator[Cell]:
    found = operator.get("measured")
    yield Cell(numbers.count(None if found is None else found["median"]), 0, "measured")


def split_bar(kinds: Mapping[str, int], whole: int) -> tuple[BarSegment, ...]:
    """Return the segments of a bar of cycles; ``whole`` is that of full length."""
    # With the largest operator as the limit, all bars of the column have one scale.
    return bar("", "", kinds, whole).parts


def _change(change: Change, *, added: bool) -> Cell:
    text = "new" if added else numbers.signed(change.more)
    return Cell(text, 0, "change", "more" if added else numbers.sign(change))


def known(indices: Sequence[int], tensors: Sequence[Any]) -> tuple[int, ...]:
    """Return the ``indices`` that exist.

    Reports are not trusted: an index that leads nowhere is left out, so that the page can still show the rest.
    """
    return tuple(index for index in indices if 0 <= index < len(tensors))


def shapes(indices: Sequence[int], tensors: Sequence[Mapping[str, Any]]) -> str:
    """Return the shapes of some tensors."""
    return ", ".join(numbers.shape(tensors[index]["shape"]) for index in known(indices, tensors))


def operator_title(index: int, operator: Mapping[str, Any], tensors: Sequence[Mapping[str, Any]]) -> str:
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


def columns(network: Mapping[str, Any]) -> Columns | None:
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
