"""SLICE and STRIDED_SLICE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.tensors import Array, Tensor


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
