"""PACK and UNPACK."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.movement import Move
from mlfbuild.native.graph.ops.movement.concatenation import Joining
from mlfbuild.native.graph.ops.movement.split import Parting
from mlfbuild.native.graph.tensors import Array, Tensor


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
