"""TRANSPOSE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.tensors import Array, Tensor


class Transpose(Movement):
    """Dimension i of the output is dimension ``permutation[i]`` of the input."""

    permutation: tuple[int, ...]

    name = "TRANSPOSE"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        shape = inputs[0].shape
        if sorted(self.permutation) != list(range(len(shape))):
            return f"{list(self.permutation)} is no order of the dimensions of {inputs[0]}"
        return rules.shape(outputs[0], [shape[axis] for axis in self.permutation])

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        yield sources[0].transpose(self.permutation), outputs[0]
