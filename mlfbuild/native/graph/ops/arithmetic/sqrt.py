"""SQRT, RSQRT and SQUARE."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import OnlyFloat, Unary, Whole, stored_of
from mlfbuild.native.graph.fixed_point import inverse_square_root
from mlfbuild.native.graph.quantize import Rescale, integer_range, quantize_multiplier
from mlfbuild.native.graph.tensors import Array, DType, Tensor


class Sqrt(Unary):
    """The square root; quantised values are truncated, and the root of negative ones is 0."""

    name = "SQRT"
    types = (DType.INT8, DType.INT16, DType.FLOAT32)
    function = np.sqrt

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        with np.errstate(all="ignore"):
            real = np.float32(source.affine.scale) * np.maximum(value, 0).astype(np.float32)
            return stored_of(np.trunc(np.sqrt(real) / np.float32(output.affine.scale)), output)


_ROOT_LEFT_SHIFT = 20
"""Bits by which RSQRT shifts a reciprocal root left before it is rescaled to the output."""


class Square(OnlyFloat):
    """The product with itself."""

    name = "SQUARE"
    function = np.square


class Rsqrt(Unary):
    """The reciprocal of the square root.

    The result for 0 is the greatest stored value, also for negative values, for which TensorFlow Lite Micro aborts.
    """

    name = "RSQRT"
    types = (DType.INT8, DType.INT16, DType.FLOAT32)

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        rescale = self.rescale(source, output)
        return np.array([self._one(int(x), rescale, output) for x in value.reshape(-1)], np.int64).reshape(value.shape)

    def _one(self, value: int, rescale: Rescale, output: Tensor) -> int:
        if value <= 0:
            return integer_range(output.dtype)[1]
        multiplier, shift = inverse_square_root(value)
        root = Rescale(multiplier, shift + _ROOT_LEFT_SHIFT).apply(np.ones(1, np.int64))
        return int(rescale.apply(root)[0]) + output.affine.zero_point

    def rescale(self, source: Tensor, output: Tensor) -> Rescale:
        """Return the rescaling of a shifted reciprocal root to the output; raises ``OverflowError``."""
        # root and product in float32, reciprocal in double
        with np.errstate(over="ignore", under="ignore"):
            product = float(np.sqrt(np.float32(source.affine.scale)) * np.float32(output.affine.scale))
        rescale = quantize_multiplier(1 / product if product else math.inf)
        shifted = Rescale(rescale.multiplier, rescale.shift - _ROOT_LEFT_SHIFT)
        if shifted.shift < -31:
            raise OverflowError(f"the output's scale {output.affine.scale:g} is too large for 1 / sqrt")
        return shifted

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.asarray(1 / np.sqrt(value))
