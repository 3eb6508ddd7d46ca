"""REVERSE_SEQUENCE."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import EVERY, Array, DType, Inputs, Tensor, Values


class ReverseSequence(Operator):
    """The first elements along ``sequence`` in reverse order, as many as the second input has for each ``batch``.

    Both attributes are dimensions. A computed length that is out of range is replaced by the nearest valid one.
    """

    sequence: int
    batch: int

    name = "REVERSE_SEQUENCE"
    types = EVERY

    @rules.takes(2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        (source, lengths), output = inputs, outputs[0]
        return (
            (None if source.dtype is output.dtype else f"mixes {source} and {output}")
            or rules.arithmetic(lengths, types=(DType.INT32, DType.INT64))
            or rules.same_quantization(source, output)
            or rules.shape(output, source.shape)
            or self._check_lengths(source, lengths)
        )

    def _check_lengths(self, source: Tensor, lengths: Tensor) -> str | None:
        dimensions = range(len(source.shape))
        if self.sequence == self.batch or self.sequence not in dimensions or self.batch not in dimensions:
            return f"{self.sequence} and {self.batch} are not two dimensions of {source}"
        if lengths.shape != (source.shape[self.batch],):
            return f"{lengths} does not hold the lengths of {source.shape[self.batch]} sequences"
        greatest = source.shape[self.sequence]
        if lengths.data is not None and ((lengths.data < 0) | (lengths.data > greatest)).any():
            return f"{lengths} holds lengths that are not from 0 to {greatest}"
        return None

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        value, lengths = values
        result = np.array(value)
        # Each row of a view is one batch, and its first dimension the sequence.
        rows = np.moveaxis(result, (self.batch, self.sequence), (0, 1))
        for row, length in zip(rows, np.clip(lengths, 0, value.shape[self.sequence]), strict=True):
            # A copy, because source and target of the assignment overlap.
            row[:length] = row[:length][::-1].copy()
        return (result,)
