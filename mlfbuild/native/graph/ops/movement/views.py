"""BROADCAST_TO, FILL, REVERSE_V2, SLICE, STRIDED_SLICE, TILE and TRANSPOSE: one assignment between two views."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.tensors import Array, Tensor


class BroadcastTo(Movement):
    """The input, broadcast to the output's shape."""

    name = "BROADCAST_TO"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        try:
            # numpy's rule is the operator's rule: sizes are equal or 1, from the last dimension on.
            fits = np.broadcast_shapes(inputs[0].shape, outputs[0].shape) == outputs[0].shape
        except ValueError:
            fits = False
        return None if fits else f"{inputs[0]} cannot be repeated to {outputs[0]}"

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        # The broadcast view has strides of 0, which the lowering turns into a loop that reads the same elements again.
        yield np.broadcast_to(sources[0], outputs[0].shape), outputs[0]


class Fill(BroadcastTo):
    """One element, repeated."""

    name = "FILL"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        if inputs[0].elements != 1:
            return f"{inputs[0]} must have one element"
        return super()._check_shapes(inputs, outputs)


class ReverseV2(Movement):
    """The elements in reverse order along ``axes``, which are counted from 0."""

    axes: tuple[int, ...]

    name = "REVERSE_V2"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        if len(set(self.axes)) < len(self.axes) or any(not 0 <= axis < len(inputs[0].shape) for axis in self.axes):
            return f"{list(self.axes)} are not different dimensions of {inputs[0]}"
        return rules.shape(outputs[0], inputs[0].shape)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        yield np.flip(sources[0], self.axes), outputs[0]


@dataclass(frozen=True)
class Steps:
    """The positions along one dimension: ``start``, ``start + step`` and so on, ``count`` of them.

    Both SLICE and STRIDED_SLICE become this form, with positions counted from the front.
    """

    start: int
    step: int
    count: int

    @classmethod
    def of(cls, positions: range) -> Steps:
        """Return ``positions``, whose step may be negative."""
        return cls(positions.start, positions.step, len(positions))

    def slice(self) -> slice:
        """Return the slice with these positions; there must be at least one."""
        # A slice that counts down to 0 cannot have the end -1, which is the last element for NumPy.
        end = self.start + self.count * self.step
        return slice(self.start, None if end < 0 else end, self.step)

    def inside(self, size: int) -> bool:
        """Return whether all positions are within a dimension of ``size``; if there are none, whether the start is."""
        if self.count == 0:
            return 0 <= self.start <= size
        last = self.start + (self.count - 1) * self.step
        return self.count > 0 and min(self.start, last) >= 0 and max(self.start, last) < size


class Slice(Movement):
    """A box of a tensor: ``steps`` for each dimension; the dimensions ``dropped``, of one step, are removed."""

    steps: tuple[Steps, ...]
    dropped: tuple[int, ...] = ()

    name = "SLICE"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        source = inputs[0]
        if len(self.steps) != len(source.shape):
            return f"{len(self.steps)} slices do not fit {source}"
        for axis, (steps, size) in enumerate(zip(self.steps, source.shape, strict=True)):
            if not steps.inside(size):
                return (
                    f"{steps.count} elements from {steps.start} on by {steps.step} are not within dimension {axis} "
                    f"of {source}"
                )
            if axis in self.dropped and steps.count != 1:
                return f"{steps.count} elements of dimension {axis} of {source}, which is to go, where 1 can"
        kept = [steps.count for axis, steps in enumerate(self.steps) if axis not in self.dropped]
        return rules.shape(outputs[0], kept)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        box = sources[0][tuple(steps.slice() for steps in self.steps)]
        # Views only: negative steps become negative strides, and the lowering reads both.
        yield box.squeeze(self.dropped), outputs[0]


class StridedSlice(Slice):
    """A box of a tensor with steps of any size in either direction."""

    name = "STRIDED_SLICE"


class Tile(Movement):
    """The input, repeated ``multiples[d]`` times along each dimension d."""

    multiples: tuple[int, ...]

    name = "TILE"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        shape = inputs[0].shape
        if len(self.multiples) != len(shape) or any(times < 1 for times in self.multiples):
            return f"multiples {list(self.multiples)} do not fit {inputs[0]}"
        return rules.shape(outputs[0], [size * times for size, times in zip(shape, self.multiples, strict=True)])

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        shape = sources[0].shape
        # Interleaved with the sizes: a new dimension before each one repeats it.
        pairs = [size for pair in zip(self.multiples, shape, strict=True) for size in pair]
        single = sources[0].reshape([size for length in shape for size in (1, length)])
        yield np.broadcast_to(single, pairs), outputs[0].reshape(pairs)


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
