"""A step of a ring buffer, which files contain as two operators: drop the oldest rows and append new ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.tensors import Array, Inputs, Tensor


class Shift(Movement):
    """The last elements of (kept, new) along ``axis``, as many as ``kept`` has; ``new`` has fewer."""

    axis: int

    name = "STRIDED_SLICE + CONCATENATION"

    def _check_counts(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        return rules.operands(inputs, outputs, required=2)

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        kept, new = inputs
        if not 0 <= self.axis < len(kept.shape):
            return f"axis {self.axis} is not a dimension of {kept}"
        # ``new`` is shorter than ``kept``: otherwise nothing of the old rows would stay.
        if len(new.shape) != len(kept.shape) or not new.shape[self.axis] < kept.shape[self.axis]:
            return f"{new} has no place in {kept} along dimension {self.axis}"
        wanted = (*kept.shape[: self.axis], new.shape[self.axis], *kept.shape[self.axis + 1 :])
        return rules.shape(new, wanted) or rules.shape(outputs[0], kept.shape)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        (kept, new), (output,) = sources, outputs
        stay = kept.shape[self.axis] - new.shape[self.axis]
        # Old rows first: in place, each row is read before it is overwritten.
        yield kept[self._rows(-stay, None)], output[self._rows(0, stay)]
        yield new, output[self._rows(stay, None)]

    def _rows(self, first: int, end: int | None) -> tuple[slice, ...]:
        """Return the index of the rows from ``first`` to ``end`` along the axis."""
        return (*(slice(None),) * self.axis, slice(first, end))
