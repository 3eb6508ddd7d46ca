"""Blocks of elements that move between dimensions.

SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND move them between dimensions 1, 2 ... and the batch, SPACE_TO_DEPTH and
DEPTH_TO_SPACE between the pixels of an image and its channels.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.ops.movement.pad import Paddings
from mlfbuild.native.graph.tensors import Array, Tensor


class Phases(Movement):
    """Moves blocks of ``block`` elements in dimensions 1, 2 and so on of a fine tensor to the batch of a coarse one.

    The coarse tensor has a batch for each position in a block, with the elements at that position of all blocks.
    ``margins`` are (before, after) of each of these dimensions: padding that is added to the fine tensor, or elements
    that are cropped from it.
    """

    block: tuple[int, ...]
    margins: Paddings

    def _check_phases(self, fine: Tensor, coarse: Tensor) -> str | None:
        spatial = len(self.block)
        if not 1 <= spatial < len(fine.shape) or len(self.margins) != spatial:
            return f"{spatial} sizes of blocks and {len(self.margins)} margins do not fit {fine}"
        if min(self.block) < 1 or any(min(pair) < 0 for pair in self.margins):
            return f"blocks {list(self.block)} must be at least 1 and margins {list(self.margins)} at least 0"
        # The batch is dimension 0, so that the sizes of the blocks belong to dimensions 1 and following.
        whole = [size + before + after for size, (before, after) in zip(fine.shape[1:], self.margins, strict=False)]
        if any(size % block for size, block in zip(whole, self.block, strict=True)):
            return f"{fine} with margins {list(self.margins)} cannot be cut into blocks of {list(self.block)}"
        blocks = [size // block for size, block in zip(whole, self.block, strict=True)]
        return rules.shape(coarse, (fine.shape[0] * math.prod(self.block), *blocks, *fine.shape[1 + spatial :]))

    def phases(self, fine: Array, coarse: Array) -> Iterator[tuple[Array, Array]]:
        """Yield a pair of views of the same elements in ``fine`` and ``coarse`` for each position in a block.

        The pairs are in the order of the batches of the coarse tensor. Positions whose elements all lie in the margins
        are left out.
        """
        batch = fine.shape[0]
        # Row-major over the positions in a block, which is the order of the batches in TFLite.
        for index, place in enumerate(itertools.product(*(range(size) for size in self.block))):
            slices = [self._along(axis, offset, fine, coarse) for axis, offset in enumerate(place)]
            # A block at the border may have none of its elements inside, if margins are as wide as a block.
            if all(there.start < there.stop for _, there in slices):
                batches = slice(index * batch, (index + 1) * batch)
                here = (slice(None), *(here for here, _ in slices))
                there = (batches, *(there for _, there in slices))
                yield fine[here], coarse[there]

    def _along(self, axis: int, offset: int, fine: Array, coarse: Array) -> tuple[slice, slice]:
        """Return the slices of the elements at ``offset`` in their block, for the fine and the coarse tensor."""
        step, before = self.block[axis], self.margins[axis][0]
        first = max(0, -((offset - before) // step))
        # Rounding up: the first block whose element at this offset is inside the fine tensor.
        last = min(coarse.shape[1 + axis] - 1, (fine.shape[1 + axis] - 1 + before - offset) // step)
        start = first * step + offset - before
        return slice(start, start + (last - first) * step + 1, step), slice(first, last + 1)


class SpaceToBatchNd(Phases):
    """The margins are filled with 0 or the output's zero point, as in LiteRT.

    TensorFlow Lite Micro does not initialise them.
    """

    name = "SPACE_TO_BATCH_ND"

    def filling(self, output: Tensor) -> int | None:
        if not any(any(pair) for pair in self.margins):
            return None
        # The stored value of 0; ``Movement.filling`` is a byte, enough for the types that have a zero point.
        return rules.resting(output)

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return self._check_phases(inputs[0], outputs[0])

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        yield from self.phases(sources[0], outputs[0])


class BatchToSpaceNd(Phases):
    """The margins are cropped."""

    name = "BATCH_TO_SPACE_ND"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return self._check_phases(outputs[0], inputs[0])

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        for fine, coarse in self.phases(outputs[0], sources[0]):
            yield coarse, fine


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
