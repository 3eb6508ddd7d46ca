"""EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS and LESS_EQUAL on real values, regardless of their scales."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.accumulate import Sums
from mlfbuild.native.graph.bases.binary import WHOLE, Binary
from mlfbuild.native.graph.rescales import COMPARISON_LEFT_SHIFT, comparison_rescale
from mlfbuild.native.graph.tensors import Array, DType, Tensor


class ComparisonOperator(Binary):
    """A relation between two elements.

    The output is bool, with the broadcast shape. int8 values are rescaled to a common scale first.
    """

    types: ClassVar[tuple[DType, ...]] = (DType.INT8, DType.INT16, *WHOLE, DType.FLOAT32)
    results = (DType.BOOL,)

    def _check_types(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        return rules.arithmetic(first, second, types=self.types) or rules.arithmetic(output, types=self.results)

    def _check_quantization(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        return rules.computable(lambda: comparison_rescale(first), lambda: comparison_rescale(second))

    # 0 and NaN compare as in C; scales differ, so that stored values cannot be compared directly.
    def _quantized(self, tensors: tuple[Tensor, Tensor, Tensor], x: Sums, y: Sums) -> Array:
        first, second = (
            comparison_rescale(tensor).apply(value * (1 << COMPARISON_LEFT_SHIFT))
            for value, tensor in zip((x, y), tensors[:2], strict=True)
        )
        return self._real(first, second)


class Ordering(ComparisonOperator):
    """An order relation; int16 tensors of the same scale are compared exactly, by their stored values."""

    def _check_quantization(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        # LiteRT compares int16 tensors without rescaling, which is right only for equal scales.
        if first.dtype is DType.INT16:
            return rules.same_quantization(first, second)
        return super()._check_quantization(first, second, output)

    def _quantized(self, tensors: tuple[Tensor, Tensor, Tensor], x: Sums, y: Sums) -> Array:
        return self._real(x, y) if tensors[0].dtype is DType.INT16 else super()._quantized(tensors, x, y)


class Equal(ComparisonOperator):
    """x == y."""

    name = "EQUAL"
    types = (*ComparisonOperator.types, DType.BOOL)
    function = np.equal


class NotEqual(ComparisonOperator):
    """x != y."""

    name = "NOT_EQUAL"
    types = Equal.types
    function = np.not_equal


class Greater(Ordering):
    """x > y."""

    name = "GREATER"
    function = np.greater


class GreaterEqual(Ordering):
    """x >= y."""

    name = "GREATER_EQUAL"
    function = np.greater_equal


class Less(Ordering):
    """x < y."""

    name = "LESS"
    function = np.less


class LessEqual(Ordering):
    """x <= y."""

    name = "LESS_EQUAL"
    function = np.less_equal
