"""SQUARED_DISTANCES: the squared Euclidean distance of every row to every point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class SquaredDistances(Operator):
    """The sum of (row - point)**2, float32 [rows, depth] and [points, depth] to [rows, points]."""

    name = "SQUARED_DISTANCES"
    types = (DType.FLOAT32,)

    @rules.takes(2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        rows, points = inputs
        return (
            rules.arithmetic(rows, points, outputs[0], types=self.types)
            or rules.rank(rows, 2)
            or rules.rank(points, 2)
            or rules.shape(points, (points.shape[0], rows.shape[1]))
            or rules.shape(outputs[0], (rows.shape[0], points.shape[0]))
        )

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        return outputs[0].elements * inputs[0].shape[1]

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        # In double: the kernel's float32 sum may be in another order.
        rows, points = (np.asarray(value, np.float64) for value in values)
        return (np.stack([((row - points) ** 2).sum(axis=1) for row in rows]).astype(np.float32),)
