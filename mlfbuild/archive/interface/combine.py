"""Inputs and outputs of a module out of all that its archive says of them.

Names come from the metadata, which has them as the model has them; their order from the most trusted place that has
as many; types and shapes from whatever place agrees with the bytes that the metadata records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mlfbuild.archive.interface.signature import Argument
from mlfbuild.library import TensorInfo, sanitize_name

_NUMBERED = re.compile(r"output([0-9]{1,9})")


def combined(
    known: Sequence[TensorInfo], places: Iterable[Sequence[Argument]], *, by_position: bool
) -> tuple[TensorInfo, ...]:
    """Return ``known``, what the metadata says, in call order and with shapes; where it is empty, what ``places`` say.

    ``places`` come most trusted first and are not asked for more than is needed. Without order anywhere, ``output0`` to
    ``output10`` are sorted as numbers and others stay. With ``by_position``, places of equally many tensors may call
    them by other names.
    """
    asked = _Asked(places, by_position)
    if not known:
        return _from_places(asked)
    tensors = _in_order(known, asked)
    return tuple(_with_shape(tensor, position, len(tensors), asked) for position, tensor in enumerate(tensors))


class _Place:
    """What one place says, to be found by name or position."""

    def __init__(self, arguments: Sequence[Argument], by_position: bool) -> None:
        self.arguments = arguments
        self._by_position = by_position
        self._by_name: dict[str, Argument | None] = {}
        for argument in arguments:
            for name in _spellings(argument.name):
                self._by_name[name] = None if name in self._by_name else argument

    def counterpart(self, name: str, position: int, count: int) -> Argument | None:
        """Return what the place says of the tensor ``name``, one of ``count``; ``None`` for nothing or two things."""
        found = self._by_name.get(sanitize_name(name))
        if found is None and self._by_position and len(self.arguments) == count:
            return self.arguments[position]
        return found

    def in_order_of_types(self, known: Sequence[TensorInfo]) -> tuple[TensorInfo, ...]:
        """Return ``known`` in the order of the place, where types and sizes tell them apart, or nothing."""
        by_type: dict[tuple[str, int | None], TensorInfo] = {(tensor.dtype, tensor.size): tensor for tensor in known}
        types = [(argument.dtype, argument.size) for argument in self.arguments]
        if not self._by_position or len(by_type) != len(known) or sorted(by_type, key=str) != sorted(types, key=str):
            return ()
        return tuple(by_type[each] for each in types)


class _Asked:
    """Places that can be walked again without asking anything twice."""

    def __init__(self, places: Iterable[Sequence[Argument]], by_position: bool) -> None:
        self._rest = (_Place(place, by_position) for place in places)
        self._seen: list[_Place] = []

    def __iter__(self) -> Iterator[_Place]:
        yield from self._seen
        for place in self._rest:
            self._seen.append(place)
            yield place


def _spellings(name: str) -> tuple[str, ...]:
    """Return ``name`` as C has it; Relay's printer puts a ``v`` before names that start with no letter."""
    plain = sanitize_name(name)
    return (plain, plain[1:]) if plain[:1] == "v" and not plain[1:2].isalpha() else (plain,)


# With metadata -------------------------------------------------------------------------------------------------------


def _in_order(known: Sequence[TensorInfo], places: _Asked) -> tuple[TensorInfo, ...]:
    if len(known) == 1:
        return tuple(known)
    by_name = {sanitize_name(tensor.name): tensor for tensor in known}
    for place in places if len(by_name) == len(known) else ():
        found = _named(by_name, place.arguments)
        if len(found) == len(known):
            return found
    return next((found for place in places if (found := place.in_order_of_types(known))), None) or _by_number(known)


def _named(by_name: dict[str, TensorInfo], arguments: Sequence[Argument]) -> tuple[TensorInfo, ...]:
    """Return the tensors that ``arguments`` name, in their order; others, as parameters, are passed over."""
    matches = (next((key for key in _spellings(argument.name) if key in by_name), None) for argument in arguments)
    return tuple(by_name[key] for key in dict.fromkeys(matches) if key is not None)


def _by_number(known: Sequence[TensorInfo]) -> tuple[TensorInfo, ...]:
    if not all(_NUMBERED.fullmatch(tensor.name) for tensor in known):
        return tuple(known)
    return tuple(sorted(known, key=lambda tensor: (len(tensor.name), tensor.name)))


def _with_shape(tensor: TensorInfo, position: int, count: int, places: _Asked) -> TensorInfo:
    """Return ``tensor`` with the shape of the first place whose type and bytes are the metadata's."""
    if tensor.shape is not None:
        return tensor
    for place in places:
        argument = place.counterpart(tensor.name, position, count)
        if argument and argument.shape is not None and argument.dtype == tensor.dtype and argument.size == tensor.size:
            return replace(tensor, shape=argument.shape)
    return tensor


# Without metadata ----------------------------------------------------------------------------------------------------


def _from_places(places: _Asked) -> tuple[TensorInfo, ...]:
    """Return the tensors of the most trusted place that names some, with what less trusted ones add."""
    first = next((place.arguments for place in places), ())
    found = [_completed(argument.name, position, len(first), places) for position, argument in enumerate(first)]
    tensors = tuple(tensor for tensor in found if tensor is not None)
    return tensors if len(tensors) == len(found) else ()  # half a signature is none


def _completed(name: str, position: int, count: int, places: _Asked) -> TensorInfo | None:
    for place in places:
        other = place.counterpart(name, position, count)
        if other is not None and other.size is not None:
            raw = other.name if sanitize_name(other.name) == name else name
            return TensorInfo(raw, other.dtype, other.size, other.shape)
    return None
