"""RELU, RELU6, RELU_0_TO_1, RELU_N1_TO_1, LEAKY_RELU and PRELU.

RELU and the bounded variants rescale, as in LiteRT; TensorFlow Lite Micro's RELU6 assumes equal scales.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.accumulate import Sums
from mlfbuild.native.graph.bases.binary import Binary
from mlfbuild.native.graph.bases.unary import Unary, Whole
from mlfbuild.native.graph.operator import Activation
from mlfbuild.native.graph.quantize import activation_range, float_activation_range, integer_range, requantize_rescale
from mlfbuild.native.graph.rescales import leaky_rescale, prelu_rescales
from mlfbuild.native.graph.tensors import Array, DType, Tensor

_TYPES = (DType.INT8, DType.INT16, DType.FLOAT32)


class Relu(Unary):
    """Values clamped as by a fused activation."""

    name = "RELU"
    types = _TYPES
    activation: ClassVar[Activation] = Activation.RELU

    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        return rules.computable(
            lambda: requantize_rescale(source, output), lambda: activation_range(self.activation, output)
        )

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        # Also with equal scales, whose factor of 1 rounds nothing: one formula serves both.
        stored = requantize_rescale(source, output).apply(value) + output.affine.zero_point
        return np.clip(stored, *activation_range(self.activation, output))

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.clip(value, *float_activation_range(self.activation))


class Relu6(Relu):
    """Values clamped to 0 and 6."""

    name = "RELU6"
    activation = Activation.RELU6


class Relu0To1(Relu):
    """Values clamped to 0 and 1."""

    name = "RELU_0_TO_1"
    activation = Activation.RELU_0_TO_1


class ReluN1To1(Relu):
    """Values clamped to -1 and 1."""

    name = "RELU_N1_TO_1"
    activation = Activation.RELU_N1_TO_1


class LeakyRelu(Unary):
    """Negative values times ``alpha``, any number."""

    alpha: float

    name = "LEAKY_RELU"
    types = _TYPES

    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        if not math.isfinite(self.alpha):
            return f"alpha {self.alpha} must be a number"
        return super()._check_quantization(source, output)

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        # Both branches rescale with two roundings of their own, as LiteRT's reference/leaky_relu.h does.
        positive = requantize_rescale(source, output).apply(value)
        negative = leaky_rescale(source, output, self.alpha).apply(value)
        # Multipliers are not negative: that of the magnitude is used, and the sign afterwards.
        stored = np.where(value >= 0, positive, -negative if self.alpha < 0 else negative)
        return np.asarray(stored + output.affine.zero_point)

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        # ``>`` and not ``>=``, as LiteRT: a zero is multiplied, which shows in its sign if alpha is negative.
        return np.where(value > 0, value, value * self.alpha)


class PRelu(Binary):
    """Negative values times factors that broadcast; the factors of int16 values are int8."""

    name = "PRELU"

    def _check_types(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        if first.dtype is not DType.INT16:
            return super()._check_types(first, second, output)
        return rules.arithmetic(first, output, types=self.types) or rules.arithmetic(second, types=(DType.INT8,))

    def _check_quantization(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        return rules.computable(lambda: prelu_rescales(first, second, output))

    def _quantized(self, tensors: tuple[Tensor, Tensor, Tensor], x: Sums, y: Sums) -> Array:
        positive, negative = prelu_rescales(*tensors)
        stored = np.where(x >= 0, positive.apply(x), negative.apply(x * y)) + tensors[2].affine.zero_point
        return np.asarray(np.clip(stored, *integer_range(tensors[2].dtype)))

    def _real(self, x: Array, y: Array) -> Array:
        return np.where(x >= 0, x, x * y)
