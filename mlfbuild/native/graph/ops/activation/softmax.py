"""SOFTMAX and LOG_SOFTMAX over the last dimension: int8 in gemmlowp's fixed point, int16 by tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.fixed_point import (
    Raw,
    exp_of_negative,
    high_multiply,
    log_of_sum,
    reciprocal_of_one_plus,
    shift_right,
)
from mlfbuild.native.graph.lookup_table import look_up, lookup_table
from mlfbuild.native.graph.quantize import (
    SOFTMAX_INTEGER_BITS,
    SoftmaxRescale,
    integer_range,
    log_softmax_rescale,
    softmax_rescale,
    softmax_table_rescale,
)
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Quantization, Tensor, Values

# kAccumulationIntegerBits of LiteRT's reference/softmax.h: each exponential is at most 1, so the sum of 4095 elements
# fits an int32.
_SUM_INTEGER_BITS = 12
"""Integer bits of the sum of exponentials."""

# kOutputIntegerBits of reference/integer_ops/log_softmax.h: with scale 1/16, an int8 reaches down to -16.
_LOGARITHM_INTEGER_BITS = 4
"""Integer bits of an int8 logarithm."""

_INT16 = (-(1 << 15), (1 << 15) - 1)


_OUTPUTS = {
    (DType.INT8, DType.INT8): Quantization((1 / 256,), (-128,)),
    # TFLite prescribes all of these, since a probability has the same range in every network.
    (DType.INT8, DType.INT16): Quantization((2.0**-16,), (-(1 << 15),)),
    (DType.INT16, DType.INT16): Quantization((2.0**-15,), (0,)),
}
"""The quantisation of SOFTMAX's output, by the types of input and output."""

_LOGARITHMS = Quantization((1 / 16,), (127,))
"""The quantisation of LOG_SOFTMAX's int8 output."""

EXPONENTIALS = lookup_table(lambda x: np.exp(x.astype(np.float64)).astype(np.float32), 10 / 65535, 32767, 2 / 65535, 0)
"""e**x for x from -10 to 0, with 15 fraction bits."""

RECIPROCALS = lookup_table(lambda x: np.float32(1) / (np.float32(1) + x), 1 / 65535, -32768, 2 / 65535, 0)
"""1 / (1 + x) for x from 0 to 1, with 15 fraction bits."""


class Softmax(Single):
    """exp(beta * x) divided by its sum over the last dimension; the scales of integer outputs are prescribed."""

    beta: float = 1.0

    name = "SOFTMAX"
    types = (DType.INT8, DType.INT16, DType.FLOAT32)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.arithmetic(source, types=self.types)
            or self._check_output(source, output)
            or rules.shape(output, source.shape)
            or rules.vectors(source)
            or (None if math.isfinite(self.beta) and self.beta > 0 else f"beta {self.beta} must be positive")
            or rules.computable(lambda: self._rescale(source))
        )

    def _check_output(self, source: Tensor, output: Tensor) -> str | None:
        wanted = _OUTPUTS.get((source.dtype, output.dtype))
        if wanted is not None:
            return _prescribed(output, wanted)
        return None if source.dtype is output.dtype is DType.FLOAT32 else f"mixes {source} and {output}"

    def _rescale(self, source: Tensor) -> object:
        if source.dtype is DType.INT16:
            return softmax_table_rescale(source, self.beta)
        return softmax_rescale(source, self.beta) if source.dtype is DType.INT8 else None

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        # Beta is part of the scale of differences, so that integers need no multiplication by it.
        source, value = inputs[0], values[0]
        if source.dtype is DType.FLOAT32:
            # The maximum is subtracted, because exp overflows (in a kernel's float32 from 89 on). It cancels out in the
            # quotient.
            powers = np.exp((value.astype(np.float64) - value.max(axis=-1, keepdims=True)) * self.beta)
            return ((powers / powers.sum(axis=-1, keepdims=True)).astype(np.float32),)
        if source.dtype is DType.INT16:
            return (self._reference_int16(source, value.astype(np.int64)),)
        return (self._reference_int8(source, value.astype(np.int64), outputs[0].dtype),)

    def _reference_int8(self, source: Tensor, value: Raw, dtype: DType) -> Array:
        """Sum Q12.19 exponentials of Q5.26 differences and divide, all in fixed point."""
        powers, counted, _ = _exponentials(value, softmax_rescale(source, self.beta))
        sums = _sum(powers, counted)
        # The sum is at least 1 (the maximum's own exponential), so it can be scaled to [1, 2), the range of the
        # fixed-point reciprocal. The quotient's last shift removes the scaling again.
        headroom = 32 - np.frexp(sums)[1].astype(np.int64)
        reciprocals = reciprocal_of_one_plus((sums << headroom) - (1 << 31))
        shares = shift_right(high_multiply(reciprocals, powers), _SUM_INTEGER_BITS - headroom + 31 - 8 * dtype.size)
        # The exponent of reference/softmax.h: the bits over unit, and 31 minus the 8 or 16 bits of the output.
        least, greatest = integer_range(dtype)
        # Differences beyond the radius of the exponential count as 0, also in the sum.
        return np.asarray(np.where(counted, np.minimum(shares + least, greatest), least), dtype.numpy)

    def _reference_int16(self, source: Tensor, value: Raw) -> Array:
        """Sum exponentials with 15 fraction bits; the reciprocal of the sum, scaled to [1, 2], comes from a table."""
        rescale = softmax_table_rescale(source, self.beta)
        differences = value - value.max(axis=-1, keepdims=True)
        places = rescale.apply(differences)
        # The table is indexed from -32768, which is the difference -10; 32767 is a difference of 0.
        powers = look_up(EXPONENTIALS, np.clip(places + 32767, *_INT16))
        sums = powers.sum(axis=-1, keepdims=True)
        # Shifted so that the leading bit is bit 30: the sum is then 1 to 2 with 30 fraction bits.
        headroom = 31 - np.frexp(sums)[1].astype(np.int64)
        # Rounded to 16 fraction bits, and then shifted to the int16 range with which the table is read: 3 << 15 is the
        # middle of [1, 2], 1.5.
        ones = ((sums << headroom) + (1 << 13)) >> 14
        reciprocals = look_up(RECIPROCALS, np.clip(ones - (3 << 15), *_INT16))
        shift = 30 - headroom
        shares = (powers * reciprocals + (np.int64(1) << (shift - 1))) >> shift
        return np.asarray(np.clip(shares, 0, 32767), np.int16)


class LogSoftmax(Single):
    """The logarithm of SOFTMAX; an int8 output has scale 1/16 and zero point 127."""

    name = "LOG_SOFTMAX"

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.arithmetic(source, output, types=self.types)
            or rules.shape(output, source.shape)
            or rules.vectors(source)
            or (self._check_quantization(source, output) if source.dtype is DType.INT8 else None)
        )

    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        return _prescribed(output, _LOGARITHMS) or rules.computable(
            lambda: log_softmax_rescale(softmax_rescale(source, 1).rescale)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, value = inputs[0], values[0]
        if source.dtype is DType.INT8:
            return (self._reference_int8(source, value.astype(np.int64)),)
        # The maximum is subtracted for the same reason as in SOFTMAX, and also cancels out in a logarithm.
        shifted = value.astype(np.float64) - value.max(axis=-1, keepdims=True)
        return ((shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))).astype(np.float32),)

    def _reference_int8(self, source: Tensor, value: Raw) -> Array:
        scaling = softmax_rescale(source, 1)
        powers, counted, scaled = _exponentials(value, scaling)
        logarithms = log_of_sum(_sum(powers, counted))
        back = log_softmax_rescale(scaling.rescale)
        # As in integer_ops/log_softmax.h: differences up to this bound get the least int8 without a logarithm.
        bounds = back.apply(logarithms - (1 << 31))
        least = np.maximum(bounds, scaling.least_difference - 1)
        differences = value - value.max(axis=-1, keepdims=True)
        stored = shift_right(scaled - logarithms, 31 - SOFTMAX_INTEGER_BITS - _LOGARITHM_INTEGER_BITS) + 127
        return np.where(differences > least, np.clip(stored, -128, 127), -128).astype(np.int8)


def _exponentials(value: Raw, scaling: SoftmaxRescale) -> tuple[Raw, Array, Raw]:
    """Return the Q0.31 exponentials of int8 values minus their row's maximum, which of them count, and the Q5.26."""
    differences = value - value.max(axis=-1, keepdims=True)
    # The radius again: below it, exp(x) is less than a step of the sum.
    counted = differences >= scaling.least_difference
    scaled = high_multiply(np.where(counted, differences, 0) << scaling.rescale.shift, scaling.rescale.multiplier)
    return exp_of_negative(scaled, SOFTMAX_INTEGER_BITS), counted, scaled


def _sum(powers: Raw, counted: Array) -> Raw:
    """Return the sum of each row as Q12.19."""
    # Each exponential loses 12 bits, so that the sum fits into 32 bits.
    return np.asarray(np.where(counted, shift_right(powers, _SUM_INTEGER_BITS), 0).sum(axis=-1, keepdims=True))


def _prescribed(output: Tensor, wanted: Quantization) -> str | None:
    """Return why ``output`` does not have the scale and zero point ``wanted``, or ``None``.

    An int16 scale may differ by a thousandth, because converters also write 1/65535 and 1/32767.
    """
    found, tolerance = output.quantization, 0.001 if output.dtype is DType.INT16 else 0
    fits = found is not None and not found.per_channel and found.zero_points == wanted.zero_points
    if found is not None and fits and math.isclose(found.scale, wanted.scale, rel_tol=tolerance):
        return None
    return f"{output} must have scale 1/{round(1 / wanted.scale)} and zero point {wanted.zero_point}"
