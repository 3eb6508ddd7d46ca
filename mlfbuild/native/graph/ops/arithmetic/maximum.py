"""MAXIMUM and MINIMUM of tensors with the same scale and zero point, by their stored values."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.accumulate import Sums
from mlfbuild.native.graph.bases.binary import WHOLE, Binary
from mlfbuild.native.graph.tensors import Array, DType, Tensor


class Extreme(Binary):
    """One of two elements, the second one if one of them is NaN."""

    types = (DType.INT8, DType.INT16, *WHOLE, DType.FLOAT32)

    def _check_quantization(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        # Equal scales, because the elements are compared and copied by their stored values.
        return rules.same_quantization(first, output) or rules.same_quantization(second, output)

    def _quantized(self, tensors: tuple[Tensor, Tensor, Tensor], x: Sums, y: Sums) -> Array:
        return self._real(x, y) + tensors[2].affine.zero_point


class Maximum(Extreme):
    """The greater of two elements."""

    name = "MAXIMUM"

    def _real(self, x: Array, y: Array) -> Array:
        # NaN compares as false, so that the second operand is the result; np.maximum would return NaN.
        return np.where(x > y, x, y)


class Minimum(Extreme):
    """The lesser of two elements."""

    name = "MINIMUM"

    def _real(self, x: Array, y: Array) -> Array:
        return np.where(x < y, x, y)
