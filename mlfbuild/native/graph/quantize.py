"""The integer arithmetic of quantised networks, as in TensorFlow Lite Micro's reference kernels.

A layer sums products of integers, which is exact, and then needs ``sum * real`` for a real factor, such as the scale of
the input times that of the weights, divided by that of the output. The factor becomes a multiplier of 31 bits and a
power of two (``Rescale``)::

    real = multiplier * 2**(shift - 31), multiplier in [2**30, 2**31)

and ``multiply_by_quantized_multiplier`` computes, in 32 bits:

1. the sum times 2**shift, if the shift is positive; this wraps around,
2. its product with the multiplier, divided by 2**31 and rounded, a half up (``high_multiply``),
3. the result divided by 2**-shift and rounded, a half away from zero (``shift_right``), if the shift is negative.

Both roundings are gemmlowp's. TensorFlow Lite Micro has ``MultiplyByQuantizedMultiplier`` in
tensorflow/lite/kernels/internal/common.cc, and ``QuantizeMultiplier`` in quantization_util.cc beside it.

For example, with the factor 0.00213, the multiplier is 1170979884 and the shift -8 (docs/numbers.md calls that a right
shift of 8)::

    sum     sum * 0.00213   after step 2   after step 3
    233          0.49629            127              0
    234          0.49842            128              1    rounding once would give 0
    -234        -0.49842           -128             -1
    235          0.50055            128              1

The traps:

- Rounding twice is part of the result. A kernel that rounds once must prove that no sum of the layer changes
  (``lowering/common/dsp``).
- The two roundings treat halves differently. With the factor 0.5, which has shift 0, the sums 1 and -1 become 1 and 0;
  with 0.25, which has shift -1, the sums 2 and -2 become 1 and -1.
- The multiplier is rounded as well: a fraction just below 1 would become 2**31, which does not fit; in that case it is
  halved and the shift increased by one (``_split``).
- -2**31 times -2**31 is the only product that saturates in step 2.
- Factors are computed in double, from scales that are float32. Where TensorFlow Lite Micro or LiteRT compute in
  float32, the parameter ``rounded`` does, because one bit of the multiplier can move an output.

Both the numpy references and the native compiler take all multipliers, shifts and clamps from this module, so that they
cannot differ. Factors of several operands are in ``rescales``, those of 64-bit sums in ``wide_sums``, and the one with
a single rounding half to even, for ONNX, in ``half_even``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlfbuild.library import round_half_away
from mlfbuild.native.graph.fixed_point import high_multiply, shift_right
from mlfbuild.native.graph.operator import Activation
from mlfbuild.native.graph.tensors import Array, DType, Tensor

Int32Array = npt.NDArray[np.int32]

SOFTMAX_INTEGER_BITS = 5
"""Integer bits of SOFTMAX's fixed-point difference from the maximum (Q5.26)."""


@dataclass(frozen=True)
class Rescale:
    """A real factor as ``multiplier * 2**(shift - 31)``; a negative shift is a right shift.

    ``multiplier`` is 0, or from 2**30 to 2**31 - 1 for a positive factor: 31 significant bits. ``shift`` is from -31 to
    30. Kernels get the shift as two numbers >= 0, because C has no shift by a negative number.
    """

    multiplier: int
    shift: int

    @property
    def left_shift(self) -> int:
        """The shift of the value before it is multiplied."""
        return max(self.shift, 0)

    @property
    def right_shift(self) -> int:
        """The shift of the product."""
        return max(-self.shift, 0)

    def apply(self, value: Array) -> npt.NDArray[np.int64]:
        """Return integers ``value`` times this factor, rounded as ``multiply_by_quantized_multiplier`` does.

        ``value`` are integers of at most 32 bits, without zero points; the result is int64 with the values of int32.
        """
        return multiply_by_quantized_multiplier(value, self.multiplier, self.shift).astype(np.int64)


def quantize_multiplier(real: float) -> Rescale:
    """Return the 31-bit multiplier and the shift closest to ``real`` (TFLite's ``QuantizeMultiplier``).

    Factors below 2**-32 become zero. Raises ``OverflowError`` if ``real`` is NaN or exceeds 2**30, because a left
    shift of any int32 would then be undefined.
    """
    if not 0 <= real < math.inf:
        raise OverflowError(f"cannot rescale by {real}")
    rescale = _split(real)
    # QuantizeMultiplier does the same: RoundingDivideByPOT shifts by at most 31 bits, and the product would be 0 in any
    # case.
    if rescale.shift < -31:
        return Rescale(0, 0)
    if rescale.shift > 30:
        raise OverflowError(f"cannot rescale by {real:g}, more than 2**30")
    return rescale


def _split(real: float) -> Rescale:
    fraction, shift = math.frexp(real)
    # frexp's fraction is in [0.5, 1), so that the multiplier is in [2**30, 2**31).
    # std::round of a positive number. Python's round() would round a half to even.
    multiplier = math.floor(fraction * (1 << 31) + 0.5)
    return Rescale(multiplier // 2, shift + 1) if multiplier == 1 << 31 else Rescale(multiplier, shift)


def multiply_by_quantized_multiplier(x: Array, multiplier: Array | int, shift: Array | int) -> Int32Array:
    """Return int32 ``x`` times ``multiplier * 2**(shift - 31)``, with gemmlowp's double rounding.

    ``multiplier`` and ``shift`` broadcast against ``x``. As in C, ``x * 2**shift`` wraps at 32 bits.
    """
    shifts = np.asarray(shift, np.int64)
    # int32 in between, because the C shifts a number of 32 bits, which loses the bits that int64 keeps.
    shifted = np.left_shift(x.astype(np.int64), np.maximum(shifts, 0)).astype(np.int32).astype(np.int64)
    product = high_multiply(shifted, np.asarray(multiplier, np.int64))
    return shift_right(product, np.maximum(-shifts, 0)).astype(np.int32)


def integer_range(dtype: DType) -> tuple[int, int]:
    """Return the least and the greatest value of the integer type ``dtype``.

    For int8: (-128, 127). Also for types that are not quantised, such as int64.
    """
    limits = np.iinfo(dtype.numpy)
    return int(limits.min), int(limits.max)


def quantize_value(real: float, scale: float, zero_point: int) -> int:
    """Return the stored value of ``real`` before clamping; the division is in float32. Raises ``OverflowError``.

    Rounded to nearest, a half away from zero, and may lie outside of the range of the type. Raises if the quotient is
    no float32, as for an infinite ``real``.
    """
    with np.errstate(over="ignore"):
        # In float32 like CalculateActivationRangeQuantized; in double, a bound could differ by one step.
        quotient = np.array([real], np.float32) / np.float32(scale)
    if not np.isfinite(quotient[0]):
        raise OverflowError(f"{real} divided by the scale {scale:g} is no float32")
    return zero_point + int(round_half_away(quotient)[0])


def activation_range(activation: Activation, tensor: Tensor) -> tuple[int, int]:
    """Return the clamp (min, max) of stored values for a fused ``activation`` that writes the quantised ``tensor``.

    The bounds of the activation are rounded to stored values as TFLite's ``CalculateActivationRangeQuantized`` does,
    and never exceed the range of the type. For example, RELU6 for int8 with scale 0.1 and zero point -128: (-128, -68).

    Raises ``ValueError`` if ``tensor`` is not quantised per tensor, and ``OverflowError`` like ``quantize_value``.
    """
    least, greatest = integer_range(tensor.dtype)
    scale, zero_point = tensor.affine.scale, tensor.affine.zero_point
    lower, upper = activation.value
    if lower is not None:
        # The later clamp must be one interval: the bound of the activation and that of the type are intersected.
        least = max(least, quantize_value(lower, scale, zero_point))
    if upper is not None:
        greatest = min(greatest, quantize_value(upper, scale, zero_point))
    return least, greatest


def whole_activation_range(activation: Activation, dtype: DType) -> tuple[int, int]:
    """Return the clamp (min, max) of integers of ``dtype`` that are not quantised, for a fused ``activation``.

    The bounds are 0, 6, -1 and 1 as integers, without a scale.
    """
    least, greatest = integer_range(dtype)
    lower, upper = activation.value
    return least if lower is None else int(lower), greatest if upper is None else int(upper)


def float_activation_range(activation: Activation) -> tuple[float, float]:
    """Return the clamp (min, max) of real values for a fused ``activation``; infinite if there is no bound."""
    lower, upper = activation.value
    return -math.inf if lower is None else lower, math.inf if upper is None else upper


def convolution_rescales(
    source: Tensor, weights: Tensor, output: Tensor, channels: int, *, rounded: bool = False
) -> tuple[Rescale, ...]:
    """Return a rescaling for each of ``channels`` output channels; ``rounded`` as in ``scale_product``.

    ``weights`` have one scale, or one for each of ``channels``, which is checked before. Raises ``OverflowError`` if a
    factor has no fixed-point form, and ``ValueError`` if a tensor is not quantised.
    """
    scales = weights.affine.scales
    # One scale for all channels: kernels have a table with a factor for each channel in any case.
    if len(scales) == 1:
        return (product_rescale(source, weights, output, rounded=rounded),) * channels
    return _channel_rescales(source.affine.scale, scales, output.affine.scale)


@functools.lru_cache(maxsize=1024)
def _channel_rescales(source: float, scales: tuple[float, ...], output: float) -> tuple[Rescale, ...]:
    """Return a rescaling for each of ``scales``; each pass over a graph asks for those of all its layers again."""
    return tuple(quantize_multiplier(source * scale / output) for scale in scales)


def product_rescale(first: Tensor, second: Tensor, output: Tensor, *, rounded: bool) -> Rescale:
    """Return the rescaling of sums of products of two tensors that have one scale each; as ``scale_product``.

    The factor is the product of both scales divided by that of ``output``. Raises ``OverflowError``.
    """
    return quantize_multiplier(scale_product(first, second, rounded=rounded) / output.affine.scale)


def scale_product(first: Tensor, second: Tensor, *, rounded: bool) -> float:
    """Return the product of the scales of two tensors that have one scale each, computed in double.

    With ``rounded`` it is rounded to float32, as LiteRT does in layers of uint8, and as TensorFlow Lite Micro did in
    FULLY_CONNECTED, BATCH_MATMUL and UNIDIRECTIONAL_SEQUENCE_LSTM until 2026-10-12.
    """
    product = first.affine.scale * second.affine.scale
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(product)) if rounded else product


def fully_connected_rescales(source: Tensor, weights: Tensor, output: Tensor, *, rounded: bool) -> tuple[Rescale, ...]:
    """Return a rescaling for each output channel; ``rounded`` as in ``product_rescale``, of a single scale only."""
    return convolution_rescales(source, weights, output, weights.shape[0], rounded=rounded)


@dataclass(frozen=True)
class DoubleScale:
    """A double as ``mantissa * 2**-shift``, by which LiteRT multiplies the sums of FULLY_CONNECTED of uint8."""

    real: float
    mantissa: int
    """Less than 2**53."""
    shift: int


_MOST_STEPS = 512
"""Steps of 8 bits from one end of the range to beyond the other."""


def double_scale(source: Tensor, weights: Tensor, output: Tensor) -> DoubleScale:
    """Return the product of the scales of two tensors, divided by that of ``output``, in double.

    Raises ``OverflowError`` if it is 2**24 or more, or if rounding a product with it to double moves a sum across the
    middle of two steps, which happens once in 2**30 scales or less.
    """
    real = source.affine.scale * weights.affine.scale / output.affine.scale
    if not 0 < real < 1 << 24:
        raise OverflowError(f"the output's scale {output.affine.scale:g} is too small for the products of the others")
    numerator, denominator = real.as_integer_ratio()
    # The kernel multiplies exactly, LiteRT in double. They differ only if the double product of the last integer below
    # the middle of two steps is rounded up to that middle.
    # Every middle between two steps that a sum can reach within the range of int8.
    for step in range(_MOST_STEPS):
        # The greatest integer whose exact product is below the middle; in double, it may be rounded up to it.
        before = -(-(2 * step + 1) * denominator // (2 * numerator)) - 1
        if before * real >= step + 0.5:
            raise OverflowError(f"products with {real!r} are not rounded alike in double and exactly")
    fraction, exponent = math.frexp(real)
    # 53 bits are the whole mantissa of a double, so that the factor is exact.
    return DoubleScale(real, int(fraction * (1 << 53)), 53 - exponent)


def requantize_rescale(source: Tensor, output: Tensor) -> Rescale:
    """Return the rescaling from the scale of ``source`` to that of ``output``, computed in double.

    Both must have one scale. Raises ``OverflowError`` if the quotient is more than 2**30.

    Used by RELU, QUANTIZE and others that change the scale only.
    """
    return quantize_multiplier(source.affine.scale / output.affine.scale)


def mean_rescale(source: Tensor, output: Tensor, count: int) -> Rescale:
    """Return the rescaling of a sum of ``count`` elements without zero points to their mean (MEAN).

    The division by ``count`` is folded into the multiplier, truncated.
    """
    rescale = requantize_rescale(source, output)
    # As QuantizedMeanOrSum: as many bits as the division gains, but a total right shift of at most 31.
    shift = min(count.bit_length() - 1, 32, 31 + rescale.shift)
    return Rescale((rescale.multiplier << shift) // count, rescale.shift - shift)


@dataclass(frozen=True)
class SoftmaxRescale:
    """The rescaling of SOFTMAX's differences from the maximum to Q5.26, and the least difference that counts."""

    rescale: Rescale
    least_difference: int


def softmax_rescale(source: Tensor, beta: float) -> SoftmaxRescale:
    """Return the parameters of an int8 SOFTMAX.

    Raises ``OverflowError`` if ``beta`` times the input's scale is too small for the fixed-point form.
    """
    fraction_bits = 31 - SOFTMAX_INTEGER_BITS
    # PreprocessSoftmaxScaling and CalculateInputRadius of quantization_util.cc.
    # TFLite clamps to 2**31 - 1, so that all larger scales have the same result.
    factor = min(beta * source.affine.scale * (1 << fraction_bits), (1 << 31) - 1.0)
    if not factor > 1:
        raise OverflowError(f"beta {beta:g} times the input's scale {source.affine.scale:g} is too small")
    rescale = _split(factor)
    radius = ((1 << SOFTMAX_INTEGER_BITS) - 1) * (1 << fraction_bits) / (1 << rescale.shift)
    return SoftmaxRescale(rescale, -math.floor(radius))


def log_softmax_rescale(rescale: Rescale) -> Rescale:
    """Return the rescaling of a Q5.26 difference to stored values, which LOG_SOFTMAX uses as a bound."""
    # The inverse of the factor, since the bound is compared in stored values.
    return quantize_multiplier((1 << (31 - rescale.shift)) / rescale.multiplier)


def softmax_table_rescale(source: Tensor, beta: float) -> Rescale:
    """Return the rescaling of int16 differences to the table of exponentials, which ends at -10.

    Raises ``OverflowError`` if ``beta`` times the input's scale makes differences exceed 32 bits.
    """
    # The table covers the differences from -10 to 0, divided into the 65,535 steps of int16.
    rescale = quantize_multiplier(source.affine.scale * beta / (10 / 65535))
    # Differences have 16 bits and a sign, so that a shift of 14 is the last that fits.
    if rescale.shift > 14:
        raise OverflowError(f"beta {beta:g} times the input's scale {source.affine.scale:g} is too large")
    return rescale


def rescale_arrays(rescales: Sequence[Rescale]) -> tuple[Int32Array, Int32Array]:
    """Return the multipliers and the shifts of ``rescales`` as two int32 arrays.

    They have one element per rescaling, so that they broadcast against sums with channels last.
    """
    return (
        np.array([rescale.multiplier for rescale in rescales], np.int32),
        np.array([rescale.shift for rescale in rescales], np.int32),
    )
