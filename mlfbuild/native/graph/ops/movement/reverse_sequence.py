"""REVERSE_SEQUENCE."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.ops.movement.gather import Picking
from mlfbuild.native.graph.tensors import Array, Inputs, Tensor, Values


class ReverseSequence(Picking):
    """The first elements along ``sequence`` in reverse order, as many as the second input has for each ``batch``.

    Both attributes are dimensions. A computed length that is out of range is replaced by the nearest valid one.
    """

    sequence: int
    batch: int

    name = "REVERSE_SEQUENCE"

    def _check_positions(self, source: Tensor, indices: Tensor) -> str | None:
        dimensions = range(len(source.shape))
        if self.sequence == self.batch or self.sequence not in dimensions or self.batch not in dimensions:
            return f"{self.sequence} and {self.batch} are not two dimensions of {source}"
        if indices.shape != (source.shape[self.batch],):
            return f"{indices} does not hold the lengths of {source.shape[self.batch]} sequences"
        greatest = source.shape[self.sequence]
        if indices.data is not None and ((indices.data < 0) | (indices.data > greatest)).any():
            return f"{indices} holds lengths that are not from 0 to {greatest}"
        return None

    def _shape(self, source: Tensor, indices: Tensor) -> tuple[int, ...]:
        return source.shape

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        value, lengths = values
        result = np.array(value)
        # Each row of a view is one batch, and its first dimension the sequence.
        rows = np.moveaxis(result, (self.batch, self.sequence), (0, 1))
        for row, length in zip(rows, np.clip(lengths, 0, value.shape[self.sequence]), strict=True):
            # A copy, because source and target of the assignment overlap.
            row[:length] = row[:length][::-1].copy()
        return (result,)
