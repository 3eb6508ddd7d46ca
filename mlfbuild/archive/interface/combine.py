"""Add the information about calling a module, combined from all places of its archive.

Names come from the metadata, which has the names of the model. The order comes from the most reliable place with the
same number of tensors, and types and shapes from any place that agrees with the sizes in the metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mlfbuild.archive.interface.entry import internal_pools
from mlfbuild.archive.interface.port_sources import Places
from mlfbuild.archive.interface.signature import Argument, header_file
from mlfbuild.library import OPERATOR, Module, TensorInfo, sanitize_name

_NUMBERED = re.compile(r"output([0-9]{1,9})")


def with_interface(module: Module, where: str) -> Module:
    """Return ``module`` with inputs, outputs, interface, pools and devices from its files.

    ``module.inputs`` and ``outputs`` must be those of the metadata. Unknown information stays empty, and if places
    disagree, the most reliable one counts. ``where`` is the graph in errors. Raises ``InputFileError`` if the module's
    graph is invalid.
    """
    if module.style == OPERATOR:
        return module
    places = Places(module, where)
    places.check_graph()
    header = places.header
    pools = (*(header.pools if header else ()), *internal_pools(places.entry))
    # Inputs are paired by name, because Relay text lists constants among them; outputs by position, because each place
    # has other names for them.
    inputs = _combined(module.inputs, places.inputs(), by_position=False)
    return replace(
        module,
        inputs=inputs,
        outputs=_combined(module.outputs, places.outputs(inputs), by_position=True),
        interface="" if module.executor != "aot" else "packed" if header_file(module) is None else "c",
        pools=tuple(sorted(pools, key=lambda pool: pool.name)),
        workspace_io=header is not None and header.workspace_io,
        devices=header.structs.get("devices", ()) if header else (),
    )


def _combined(
    known: Sequence[TensorInfo], places: Iterable[Sequence[Argument]], *, by_position: bool
) -> tuple[TensorInfo, ...]:
    """Return ``known``, the tensors of the metadata, in call order and with shapes; if empty, those of ``places``.

    ``places`` are sorted by reliability and are only read as far as needed. If no place has an order, ``output0`` to
    ``output10`` are sorted as numbers, and other tensors keep their order. With ``by_position``, places with the same
    number of tensors may have other names for them.
    """
    asked = _Asked(places, by_position)
    if not known:
        return _from_places(asked)
    tensors = _in_order(known, asked)
    return tuple(_with_shape(tensor, position, len(tensors), asked) for position, tensor in enumerate(tensors))


class _Place:
    """The arguments in one place, which can be looked up by name or position."""

    def __init__(self, arguments: Sequence[Argument], by_position: bool) -> None:
        self.arguments = arguments
        self._by_position = by_position
        self._by_name: dict[str, Argument | None] = {}
        for argument in arguments:
            for name in _spellings(argument.name):
                # If two arguments have one spelling in C, neither can be identified by it.
                self._by_name[name] = None if name in self._by_name else argument

    def counterpart(self, name: str, position: int, count: int) -> Argument | None:
        """Return the argument for the tensor ``name``, one of ``count``; ``None`` if there is not exactly one."""
        # Names come first: positions only help if the place has neither more nor fewer arguments.
        found = self._by_name.get(sanitize_name(name))
        if found is None and self._by_position and len(self.arguments) == count:
            return self.arguments[position]
        return found

    def in_order_of_types(self, known: Sequence[TensorInfo]) -> tuple[TensorInfo, ...]:
        """Return ``known`` in the order of the place if types and sizes are distinct; otherwise an empty tuple."""
        by_type: dict[tuple[str, int | None], TensorInfo] = {(tensor.dtype, tensor.size): tensor for tensor in known}
        types = [(argument.dtype, argument.size) for argument in self.arguments]
        # Sizes identify tensors only if all are different, and if the place has exactly these. Sorted as text, because
        # None has no order.
        if not self._by_position or len(by_type) != len(known) or sorted(by_type, key=str) != sorted(types, key=str):
            return ()
        return tuple(by_type[each] for each in types)


class _Asked:
    """Places that can be iterated several times but are read only once."""

    def __init__(self, places: Iterable[Sequence[Argument]], by_position: bool) -> None:
        self._rest = (_Place(place, by_position) for place in places)
        self._seen: list[_Place] = []

    def __iter__(self) -> Iterator[_Place]:
        yield from self._seen
        # One place after the other, and only if those before were not enough: Relay text may be long.
        for place in self._rest:
            self._seen.append(place)
            yield place


def _spellings(name: str) -> tuple[str, ...]:
    """Return the spellings of ``name`` in C; Relay's printer adds a ``v`` to names that do not start with a letter."""
    plain = sanitize_name(name)
    return (plain, plain[1:]) if plain[:1] == "v" and not plain[1:2].isalpha() else (plain,)


# With metadata -------------------------------------------------------------------------------------------------------


def _in_order(known: Sequence[TensorInfo], places: _Asked) -> tuple[TensorInfo, ...]:
    # A single tensor has only one order, so no place needs to be read.
    if len(known) == 1:
        return tuple(known)
    by_name = {sanitize_name(tensor.name): tensor for tensor in known}
    # Two tensors with one name in C cannot be found by it.
    for place in places if len(by_name) == len(known) else ():
        found = _named(by_name, place.arguments)
        if len(found) == len(known):
            return found
    # From certain to less certain: distinct types and sizes, then the numbers in TVM's names of outputs.
    return next((found for place in places if (found := place.in_order_of_types(known))), None) or _by_number(known)


def _named(by_name: dict[str, TensorInfo], arguments: Sequence[Argument]) -> tuple[TensorInfo, ...]:
    """Return the tensors of ``arguments`` in their order; other arguments, such as parameters, are skipped."""
    matches = (next((key for key in _spellings(argument.name) if key in by_name), None) for argument in arguments)
    # Two arguments may be spellings of the same tensor.
    return tuple(by_name[key] for key in dict.fromkeys(matches) if key is not None)


def _by_number(known: Sequence[TensorInfo]) -> tuple[TensorInfo, ...]:
    if not all(_NUMBERED.fullmatch(tensor.name) for tensor in known):
        return tuple(known)
    # By length first, so that output2 comes before output10.
    return tuple(sorted(known, key=lambda tensor: (len(tensor.name), tensor.name)))


def _with_shape(tensor: TensorInfo, position: int, count: int, places: _Asked) -> TensorInfo:
    """Return ``tensor`` with the shape from the first place with the type and size of the metadata."""
    if tensor.shape is not None:
        return tensor
    for place in places:
        argument = place.counterpart(tensor.name, position, count)
        # An empty dtype means that the place does not have it.
        if argument is None or argument.dtype not in {"", tensor.dtype}:
            continue
        found = replace(argument, dtype=tensor.dtype).of_size(tensor.size)
        # A shape counts only if it gives the number of bytes that the metadata records.
        if found.shape is not None and found.size == tensor.size:
            return replace(tensor, shape=found.shape)
    return tensor


# Without metadata ----------------------------------------------------------------------------------------------------


def _from_places(places: _Asked) -> tuple[TensorInfo, ...]:
    """Return the tensors of the most reliable place that has any, completed from less reliable ones."""
    first = next((place.arguments for place in places), ())
    found = [_completed(argument.name, position, len(first), places) for position, argument in enumerate(first)]
    tensors = tuple(tensor for tensor in found if tensor is not None)
    return tensors if len(tensors) == len(found) else ()  # incomplete signatures are dropped


def _completed(name: str, position: int, count: int, places: _Asked) -> TensorInfo | None:
    for place in places:
        other = place.counterpart(name, position, count)
        if other is not None and other.size is not None:
            # The first place may have names of C, and a later one the model's own spelling of them.
            raw = other.name if sanitize_name(other.name) == name else name
            return TensorInfo(raw, other.dtype, other.size, other.shape)
    return None
