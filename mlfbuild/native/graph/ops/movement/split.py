"""SPLIT and SPLIT_V."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.ops.movement.concatenation import check_parts, pieces_along
from mlfbuild.native.graph.tensors import Array, Inputs, Tensor


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
