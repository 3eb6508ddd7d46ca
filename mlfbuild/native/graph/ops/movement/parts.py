"""CONCATENATION, SPLIT, SPLIT_V, PACK and UNPACK: several tensors are parts of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.tensors import Array, Inputs, Tensor


class Joining(Movement):
    """Joins any number of tensors along ``axis`` (counted from 0)."""

    axis: int

    def _check_counts(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        return None if len(outputs) == 1 else f"has {len(outputs)} outputs, writes 1"


class Concatenation(Joining):
    """Concatenates tensors."""

    name = "CONCATENATION"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        reason, first = check_parts(inputs, outputs[0], self.axis), inputs[0].shape
        # Only if the parts fit together is the output's shape the mistake, and worth a suggestion.
        if reason is None or not 0 <= self.axis < len(first) or any(len(one.shape) != len(first) for one in inputs):
            return reason
        length = sum(part.shape[self.axis] for part in inputs)
        whole = replace(
            outputs[0], shape=(*first[: self.axis], length, *first[self.axis + 1 :]), quantization=None, data=None
        )
        fits = check_parts(inputs, whole, self.axis) is None
        return rules.WrongShape.of(outputs[0], whole.shape, reason) if fits else reason

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        pieces = pieces_along(outputs[0], [source.shape[self.axis] for source in sources], self.axis)
        return zip(sources, pieces, strict=True)


def check_parts(parts: Sequence[Tensor], whole: Tensor, axis: int) -> str | None:
    """Return why ``parts``, concatenated along ``axis``, do not form ``whole``, or ``None``.

    The sizes along ``axis`` must add up to that of ``whole``, and all other sizes must be equal.
    """
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


def pieces_along(whole: Array, lengths: Sequence[int], axis: int) -> Iterator[Array]:
    """Yield consecutive views of ``whole`` along ``axis`` with ``lengths`` elements.

    The lengths add up to the size of the dimension. A piece shares its memory with ``whole``, so that it can be read
    from or written to.
    """
    start = 0
    for length in lengths:
        yield whole[(slice(None),) * axis + (slice(start, start + length),)]
        start += length


class Parting(Movement):
    """Splits a tensor into any number of others along ``axis`` (counted from 0)."""

    axis: int

    def _check_counts(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        return None if len(inputs) == 1 else f"has {len(inputs)} inputs, takes 1"


class Split(Parting):
    """Pieces of a tensor with the lengths of the outputs."""

    name = "SPLIT"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return check_parts(outputs, inputs[0], self.axis)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        pieces = pieces_along(sources[0], [output.shape[self.axis] for output in outputs], self.axis)
        return zip(pieces, outputs, strict=True)


class SplitV(Split):
    """Pieces of different lengths."""

    name = "SPLIT_V"


class Pack(Joining):
    """Stacks tensors of the same shape along a new dimension ``axis``."""

    name = "PACK"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        reason, first = _layers(inputs, outputs[0], self.axis), inputs[0].shape
        if reason is None or not 0 <= self.axis <= len(first) or any(part.shape != first for part in inputs):
            return reason
        return rules.WrongShape.of(outputs[0], (*first[: self.axis], len(inputs), *first[self.axis :]), reason)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        return zip(sources, _slabs(outputs[0], self.axis), strict=True)


class Unpack(Parting):
    """Splits a tensor into slices along the dimension ``axis``, which is removed."""

    name = "UNPACK"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return _layers(outputs, inputs[0], self.axis)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        return zip(_slabs(sources[0], self.axis), outputs, strict=True)


def _layers(parts: Sequence[Tensor], whole: Tensor, axis: int) -> str | None:
    """Return why ``parts``, stacked along a new dimension ``axis``, do not form ``whole``, or ``None``."""
    if not 0 <= axis < len(whole.shape):
        return f"axis {axis} is not a dimension of {whole}"
    if len(parts) != whole.shape[axis]:
        return f"{len(parts)} tensors do not make the dimension {axis} of {whole}"
    return rules.first(rules.shape(part, (*whole.shape[:axis], *whole.shape[axis + 1 :])) for part in parts)


def _slabs(whole: Array, axis: int) -> Iterator[Array]:
    """Yield views of the slices of ``whole`` along ``axis``; iteration would copy scalars."""
    # A scalar slice of a 1-D array would be a copy and not a view; the ellipsis keeps it a view.
    turned = np.moveaxis(whole, axis, 0)
    return (turned[index, ...] for index in range(len(turned)))
