"""SPACE_TO_DEPTH and DEPTH_TO_SPACE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.tensors import Array, Tensor


class Blocks(Movement):
    """Squares of ``block`` by ``block`` pixels of one NHWC image are the channels of single pixels of another."""

    block: int

    def _check_block(self, fine: Tensor, coarse: Tensor) -> str | None:
        if len(fine.shape) != 4 or self.block < 1 or fine.shape[1] % self.block or fine.shape[2] % self.block:
            return f"{fine} cannot be cut into squares of {self.block}"
        batch, rows, columns, channels = fine.shape
        return rules.shape(coarse, (batch, rows // self.block, columns // self.block, channels * self.block**2))

    def _squares(self, fine: Array) -> Array:
        """Return ``fine`` as (batch, row, column, row in the square, column in it, channel)."""
        batch, rows, columns, channels = fine.shape
        sizes = (batch, rows // self.block, self.block, columns // self.block, self.block, channels)
        # Splitting both sides into blocks makes the move one transposed assignment, without a loop.
        squares: Array = fine.reshape(sizes).transpose(0, 1, 3, 2, 4, 5)
        return squares

    def _channels(self, coarse: Array) -> Array:
        return coarse.reshape(*coarse.shape[:3], self.block, self.block, coarse.shape[3] // self.block**2)


class SpaceToDepth(Blocks):
    """Each square of pixels becomes the channels of one."""

    name = "SPACE_TO_DEPTH"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return self._check_block(inputs[0], outputs[0])

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        yield self._squares(sources[0]), self._channels(outputs[0])


class DepthToSpace(Blocks):
    """The channels of each pixel become a square of pixels."""

    name = "DEPTH_TO_SPACE"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return rules.rank(outputs[0], 4) or self._check_block(outputs[0], inputs[0])

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        yield self._channels(sources[0]), self._squares(outputs[0])
