"""TRANSPOSE, REVERSE_V2, TILE, BROADCAST_TO, FILL, SPACE_TO_DEPTH, DEPTH_TO_SPACE: a tensor seen with other strides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.ops import rules
from mlfbuild.graph.ops.movement import Move, Movement
from mlfbuild.graph.types import Array, Tensor


@dataclass(frozen=True)
class Transpose(Movement):
    """Dimension i of the output is dimension ``permutation[i]`` of the input."""

    permutation: tuple[int, ...]

    name: ClassVar[str] = "TRANSPOSE"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        shape = inputs[0].shape
        if sorted(self.permutation) != list(range(len(shape))):
            return f"{list(self.permutation)} is no order of the dimensions of {inputs[0]}"
        return rules.shape(outputs[0], [shape[axis] for axis in self.permutation])

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        yield sources[0].transpose(self.permutation), outputs[0]


@dataclass(frozen=True)
class BroadcastTo(Movement):
    """The input repeated along dimensions of 1 and in front, to the output's shape."""

    name: ClassVar[str] = "BROADCAST_TO"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        try:
            fits = np.broadcast_shapes(inputs[0].shape, outputs[0].shape) == outputs[0].shape
        except ValueError:
            fits = False
        return None if fits else f"{inputs[0]} cannot be repeated to {outputs[0]}"

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        yield np.broadcast_to(sources[0], outputs[0].shape), outputs[0]


@dataclass(frozen=True)
class Fill(BroadcastTo):
    """One element everywhere."""

    name: ClassVar[str] = "FILL"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        if inputs[0].elements != 1:
            return f"{inputs[0]} must have one element"
        return super()._check_shapes(inputs, outputs)


@dataclass(frozen=True)
class ReverseV2(Movement):
    """The elements in the other order along ``axes``, which are counted from 0."""

    axes: tuple[int, ...]

    name: ClassVar[str] = "REVERSE_V2"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        if len(set(self.axes)) < len(self.axes) or any(not 0 <= axis < len(inputs[0].shape) for axis in self.axes):
            return f"{list(self.axes)} are not different dimensions of {inputs[0]}"
        return rules.shape(outputs[0], inputs[0].shape)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        yield np.flip(sources[0], self.axes), outputs[0]


@dataclass(frozen=True)
class Tile(Movement):
    """The input ``multiples[d]`` times along each dimension d."""

    multiples: tuple[int, ...]

    name: ClassVar[str] = "TILE"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        shape = inputs[0].shape
        if len(self.multiples) != len(shape) or any(times < 1 for times in self.multiples):
            return f"multiples {list(self.multiples)} do not fit {inputs[0]}"
        return rules.shape(outputs[0], [size * times for size, times in zip(shape, self.multiples, strict=True)])

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        shape = sources[0].shape
        pairs = [size for pair in zip(self.multiples, shape, strict=True) for size in pair]
        single = sources[0].reshape([size for length in shape for size in (1, length)])
        yield np.broadcast_to(single, pairs), outputs[0].reshape(pairs)


@dataclass(frozen=True)
class Blocks(Movement):
    """Squares of ``block`` by ``block`` pixels of an NHWC image on one side are the channels of pixels on the other."""

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
        squares: Array = fine.reshape(sizes).transpose(0, 1, 3, 2, 4, 5)
        return squares

    def _channels(self, coarse: Array) -> Array:
        return coarse.reshape(*coarse.shape[:3], self.block, self.block, coarse.shape[3] // self.block**2)


@dataclass(frozen=True)
class SpaceToDepth(Blocks):
    """Each square of pixels as the channels of one."""

    name: ClassVar[str] = "SPACE_TO_DEPTH"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return self._check_block(inputs[0], outputs[0])

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        yield self._squares(sources[0]), self._channels(outputs[0])


@dataclass(frozen=True)
class DepthToSpace(Blocks):
    """The channels of each pixel as a square of pixels."""

    name: ClassVar[str] = "DEPTH_TO_SPACE"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        return rules.rank(outputs[0], 4) or self._check_block(outputs[0], inputs[0])

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        yield self._channels(sources[0]), self._squares(outputs[0])
