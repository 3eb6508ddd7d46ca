"""CONCATENATION, PACK, SPLIT, SPLIT_V and UNPACK."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.ops import rules
from mlfbuild.graph.ops.movement import Move, Movement
from mlfbuild.graph.types import Array, Tensor


@dataclass(frozen=True)
class Joining(Movement):
    """Any number of tensors become one along ``axis`` (counted from 0)."""

    axis: int

    def _check_counts(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return None if len(outputs) == 1 else f"has {len(outputs)} outputs, writes 1"


@dataclass(frozen=True)
class Parting(Movement):
    """A tensor becomes any number of others along ``axis`` (counted from 0)."""

    axis: int

    def _check_counts(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return None if len(inputs) == 1 else f"has {len(inputs)} inputs, takes 1"


@dataclass(frozen=True)
class Concatenation(Joining):
    """One tensor after the other."""

    name: ClassVar[str] = "CONCATENATION"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return _parts(inputs, outputs[0], self.axis)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        pieces = _pieces(outputs[0], [source.shape[self.axis] for source in sources], self.axis)
        return zip(sources, pieces, strict=True)


@dataclass(frozen=True)
class Split(Parting):
    """Pieces of a tensor, as long as the outputs are."""

    name: ClassVar[str] = "SPLIT"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return _parts(outputs, inputs[0], self.axis)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        pieces = _pieces(sources[0], [output.shape[self.axis] for output in outputs], self.axis)
        return zip(pieces, outputs, strict=True)


@dataclass(frozen=True)
class SplitV(Split):
    """Pieces of different lengths."""

    name: ClassVar[str] = "SPLIT_V"


@dataclass(frozen=True)
class Pack(Joining):
    """Tensors of one shape, side by side along a new dimension ``axis``."""

    name: ClassVar[str] = "PACK"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return _layers(inputs, outputs[0], self.axis)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        return zip(sources, _slabs(outputs[0], self.axis), strict=True)


@dataclass(frozen=True)
class Unpack(Parting):
    """The tensors that lie side by side along the dimension ``axis``, which goes."""

    name: ClassVar[str] = "UNPACK"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return _layers(outputs, inputs[0], self.axis)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        return zip(_slabs(sources[0], self.axis), outputs, strict=True)


def _parts(parts: Sequence[Tensor], whole: Tensor, axis: int) -> str | None:
    """Return why ``parts``, one after the other along ``axis``, are not ``whole``."""
    rank = len(whole.shape)
    if not 0 <= axis < rank:
        return f"axis {axis} is not a dimension of {whole}"
    for part in parts:
        if (*part.shape[:axis], *part.shape[axis + 1 :]) != (*whole.shape[:axis], *whole.shape[axis + 1 :]):
            return f"{part} is no part of {whole} along dimension {axis}"
        if len(part.shape) != rank:
            return f"{part} must have {rank} dimensions"
    length = sum(part.shape[axis] for part in parts)
    return None if length == whole.shape[axis] else f"the parts of {whole} along dimension {axis} add up to {length}"


def _layers(parts: Sequence[Tensor], whole: Tensor, axis: int) -> str | None:
    """Return why ``parts``, side by side along a new dimension ``axis``, are not ``whole``."""
    if not 0 <= axis < len(whole.shape):
        return f"axis {axis} is not a dimension of {whole}"
    if len(parts) != whole.shape[axis]:
        return f"{len(parts)} tensors do not make the dimension {axis} of {whole}"
    return rules.first(rules.shape(part, (*whole.shape[:axis], *whole.shape[axis + 1 :])) for part in parts)


def _pieces(whole: Array, lengths: Sequence[int], axis: int) -> Iterator[Array]:
    start = 0
    for length in lengths:
        yield whole[(slice(None),) * axis + (slice(start, start + length),)]
        start += length


def _slabs(whole: Array, axis: int) -> Iterator[Array]:
    """Yield views of what lies side by side along ``axis`` in ``whole``; iteration would copy scalars."""
    turned = np.moveaxis(whole, axis, 0)
    return (turned[index, ...] for index in range(len(turned)))
