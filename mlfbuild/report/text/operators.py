"""The operators of a model, and the tensors in its arena at peak use, in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlfbuild.core import counted, printable, text_table
from mlfbuild.library import ARENA, Network, NetworkOperator, RemovedChannels
from mlfbuild.report.operators.network_sizes import FlashPart, NetworkSizes
from mlfbuild.report.sizes.owners import FLASH_KINDS, Owner

_KIND, _NAME = 17, 11
"""Widths of an operator's type and name, so that lines have at most 80 columns."""
_TENSOR = 40
_TOGETHER = " + "


def all_operators(models: Sequence[Owner], networks: Mapping[str, Sequence[NetworkSizes]]) -> Iterator[str]:
    """Yield the table of operators of each module of ``models``, or a line if they are unknown."""
    for owner in models:
        yield from (operators_text(owner.name, sizes) for sizes in networks[owner.name])
        if owner.pieces and not networks[owner.name]:
            yield f"model {owner.name}: its archive does not list its operators"


def operators_text(model: str, sizes: NetworkSizes) -> str:
    """Return a line for each operator of ``model``: multiply-accumulates, bytes of flash by kind, bytes of output.

    The tensors in the arena at peak use follow.
    """
    network = sizes.network
    title = model if model == sizes.module else f"{model} (module {printable(sizes.module)})"
    rows = []
    for at, (operator, part) in enumerate(zip(network.operators, sizes.parts, strict=True)):
        written = sum(network.tensors[number].size for number in operator.outputs)
        rows.append(_row(f"{at}", _label(operator), operator.macs, part, f"{written:,}"))
    whole = FlashPart(tuple(piece for part in (*sizes.parts, sizes.rest) for piece in part.pieces))
    rows += [_row("", "outside operators", None, sizes.rest), _row("", "total", network.macs, whole)]
    table = text_table(rows, header=("", "", "MACs", *FLASH_KINDS, "output"), align="rlrrrrr")
    head = f"model {title}, {counted(len(network.operators), 'operator')}"
    return "\n".join([head, table, *_removed(network), *_fullest(sizes)])


def _removed(network: Network) -> Iterator[str]:
    """Yield the table of what the compiler removed from layers."""
    total = network.removed
    if total is None:
        return
    found = [(at, each, each.removed) for at, each in enumerate(network.operators) if each.removed is not None]
    rows = [(f"{at}", _label(operator), *_of_removed(removed)) for at, operator, removed in found]
    yield ""
    yield "removed, because it is the same for every input or nothing reads it"
    header = ("", "", "channels", "of", "weights", "MACs")
    whole = ("", "total", "", "", f"{total.weights:,}", f"{total.macs:,}")  # several layers have the same channels
    yield text_table([*rows, whole], header=header, align="rlrrrr")


def _of_removed(removed: RemovedChannels) -> tuple[str, ...]:
    return tuple(f"{number:,}" for number in (removed.channels, removed.of, removed.weights, removed.macs))


def _row(index: str, label: str, macs: int | None, part: FlashPart, output: str = "") -> tuple[str, ...]:
    flash = (f"{part.of_kind(kind):,}" for kind in FLASH_KINDS)
    return index, label, "" if macs is None else f"{macs:,}", *flash, output


def _label(operator: NetworkOperator) -> str:
    """Return the type and name of ``operator``; only the type if both are part of the function's name."""
    # TVM's graphs name an operator after its function, so its kind and its name would say the same twice.
    if operator.operator and operator.function.endswith(operator.operator):  # as in TVM's graphs
        return _beginning(operator.operator, _KIND + 1 + _NAME)
    first, *others = operator.operator.split(_TOGETHER)
    more = f"{_TOGETHER}{len(others)}" if others else ""
    kind = f"{_beginning(first, _KIND - len(more))}{more}"
    return f"{kind:{_KIND}} {_end(operator.name.split(_TOGETHER)[0], _NAME)}"


def _beginning(text: str, width: int) -> str:
    text = printable(text)
    return text if len(text) <= width else f"{text[: width - 2]}.."


def _end(name: str, width: int) -> str:
    """Return the end of a name, where names differ; only the first of the names that a converter joined."""
    text = printable(name.split(";", maxsplit=1)[0])
    return text if len(text) <= width else f"..{text[2 - width :]}"


def _fullest(sizes: NetworkSizes) -> Iterator[str]:
    network = sizes.network
    # Several arenas have a table of their own.
    if not network.arena or not network.operators or network.memories:
        return
    time = network.peak
    scratch = network.operators[time].scratch
    rows = [
        (tensor.offset or 0, tensor.size, f"{_end(tensor.name, _TENSOR)}, {tensor.first} to {tensor.last}")
        for tensor in network.tensors
        if tensor.memory == ARENA and tensor.first <= time <= tensor.last
    ]
    if scratch is not None:
        rows.append((scratch.offset, scratch.size, f"scratch memory of {time}"))
    yield ""
    yield f"arena, peak use: {network.usage[time]:,} of {network.arena:,} bytes, during operator {time}"
    cells = [(f"{offset:,}", f"{size:,}", text) for offset, size, text in sorted(rows)]
    yield text_table(cells, header=("offset", "bytes", "tensor, first to last operator"), align="rr", indent=2)
