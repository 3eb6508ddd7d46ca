"""DETERMINANT: the determinants of square matrices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

# The kernel needs a copy of a matrix in scratch memory, which grows with the square.
_MOST_ROWS = 256


class Determinant(Single):
    """The determinant of each matrix, float32 [..., rows, rows] to [...]."""

    name = "DETERMINANT"
    types = (DType.FLOAT32,)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        if len(source.shape) < 2 or source.shape[-1] != source.shape[-2]:
            return f"{source} does not hold square matrices"
        return (
            rules.arithmetic(source, output, types=self.types)
            or rules.within("the number of rows", source.shape[-1], 1, _MOST_ROWS)
            or rules.shape(output, source.shape[:-2])
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (np.asarray(np.linalg.det(values[0].astype(np.float64)), np.float32),)
