"""SOFTMAX over the last dimension, int8 in gemmlowp's fixed point, and LOG_SOFTMAX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.graph.fixed_point import exp_of_negative, high_multiply, reciprocal_of_one_plus, shift_right
from mlfbuild.graph.ops import rules
from mlfbuild.graph.ops.single import Single
from mlfbuild.graph.quantize import SOFTMAX_INTEGER_BITS, softmax_rescale
from mlfbuild.graph.types import Array, DType, Tensor

_SUM_INTEGER_BITS = 12
"""Integer bits of the sum of exponentials."""


@dataclass(frozen=True)
class Softmax(Single):
    """exp(beta * x) divided by its sum over the last dimension; an int8 output has scale 1/256 and zero point -128."""

    beta: float = 1.0

    name: ClassVar[str] = "SOFTMAX"

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.arithmetic(source, output)
            or rules.shape(output, source.shape)
            or (None if source.shape else f"{source} has no dimension to go over")
            or (None if math.isfinite(self.beta) and self.beta > 0 else f"beta {self.beta} must be positive")
            or (self._check_quantization(source, output) if source.dtype is DType.INT8 else None)
        )

    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        assert output.quantization is not None
        if output.quantization.scale != 1 / 256 or output.quantization.zero_point != -128:
            return f"{output} must have scale 1/256 and zero point -128"
        return rules.computable(lambda: softmax_rescale(source, self.beta))

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        source, value = inputs[0], values[0]
        assert source is not None and value is not None
        if source.dtype is DType.FLOAT32:
            powers = np.exp((value.astype(np.float64) - value.max(axis=-1, keepdims=True)) * self.beta)
            return ((powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32),)
        return (self._reference_int8(source, value.astype(np.int64)),)

    def _reference_int8(self, source: Tensor, value: npt.NDArray[np.int64]) -> Array:
        """Sum Q12.19 exponentials of Q5.26 differences and divide, all in fixed point."""
        scaling = softmax_rescale(source, self.beta)
        differences = value - value.max(axis=-1, keepdims=True)
        counted = differences >= scaling.least_difference
        scaled = high_multiply(np.where(counted, differences, 0) << scaling.rescale.shift, scaling.rescale.multiplier)
        powers = exp_of_negative(scaled, SOFTMAX_INTEGER_BITS)
        sums = np.where(counted, shift_right(powers, _SUM_INTEGER_BITS), 0).sum(axis=-1, keepdims=True)
        headroom = 32 - np.frexp(sums)[1].astype(np.int64)
        reciprocals = reciprocal_of_one_plus((sums << headroom) - (1 << 31))
        shares = shift_right(high_multiply(reciprocals, powers), _SUM_INTEGER_BITS - headroom + 31 - 8)
        return np.where(counted, np.minimum(shares - 128, 127), -128).astype(np.int8)


@dataclass(frozen=True)
class LogSoftmax(Single):
    """The logarithm of SOFTMAX, of float32."""

    name: ClassVar[str] = "LOG_SOFTMAX"
    types: ClassVar[tuple[DType, ...]] = (DType.FLOAT32,)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.arithmetic(source, output, types=self.types)
            or rules.shape(output, source.shape)
            or (None if source.shape else f"{source} has no dimension to go over")
        )

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        assert values[0] is not None
        shifted = values[0].astype(np.float64) - values[0].max(axis=-1, keepdims=True)
        return ((shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))).astype(np.float32),)
