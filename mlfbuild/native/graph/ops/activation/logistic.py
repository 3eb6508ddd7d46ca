"""LOGISTIC and TANH: int8 in gemmlowp's fixed point, int16 by interpolation in a table."""

from __future__ import annotations

import abc
import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import fixed_point
from mlfbuild.native.graph.bases.unary import Unary, Whole
from mlfbuild.native.graph.lookup_table import LOGISTIC_TABLE, TableScale, table_scale
from mlfbuild.native.graph.quantize import Rescale, integer_range
from mlfbuild.native.graph.tensors import Array, DType, Tensor

_INTEGER_BITS = 4
"""Integer bits of the fixed-point argument of int8 functions."""

# The radius below is 0 from here on, so that larger scales change no result, but their shift would not fit.
_LARGEST_SCALE = 8.0
"""The scale of int8 arguments from which on each of them is at one end of the function or the other."""


class Sigmoid(Unary):
    """An S-shaped function; the scale and zero point of an int8 output use the whole range of the type."""

    types = (DType.INT8, DType.INT16, DType.FLOAT32)
    output_scale: ClassVar[float]
    output_zero_point: ClassVar[int]
    most_doublings: ClassVar[int]
    """The number of doublings of 2**-12 up to which int16 scales need no multiplier."""

    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        if output.dtype is DType.INT16 and output.affine.scale != 2.0**-15:
            return f"{output} must have scale 1/32768"
        if output.dtype is DType.INT8 and (output.affine.scale, output.affine.zero_point) != (
            self.output_scale,
            self.output_zero_point,
        ):
            return f"{output} must have scale 1/{round(1 / self.output_scale)} and zero point {self.output_zero_point}"
        return super()._check_quantization(source, output)

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        if source.dtype is DType.INT16:
            return self.interpolated(self.table_scale(source), value)
        rescale = self._argument_rescale(source)
        least, greatest = integer_range(output.dtype)
        # CalculateInputRadius of quantization_util.cc. Values beyond it are at the end of the function, and would
        # overflow the fixed-point argument.
        # A scale so large that the radius rounds to 0 leaves only the ends of the function.
        radius = math.floor((2**_INTEGER_BITS - 1) * 2.0 ** (31 - _INTEGER_BITS - rescale.shift))
        inside = np.clip(value, 1 - radius, radius - 1) if radius else np.zeros_like(value)
        argument = rescale.apply(inside)
        result = self._fixed(argument)
        fraction_bits = round(-math.log2(self.output_scale))
        stored = fixed_point.shift_right(result, 31 - fraction_bits) + self.output_zero_point
        return np.where(value <= -radius, least, np.where(value >= radius, greatest, stored))

    def table_scale(self, source: Tensor) -> TableScale:
        """Return the scaling of an int16 value to the argument of the table; raises ``OverflowError``.

        Powers of two from 2**-12 on need no multiplier, up to ``most_doublings`` of them.
        """
        return table_scale(source.affine.scale, self.most_doublings)

    def interpolated(self, scale: TableScale, value: Whole) -> Whole:
        """Return the int16 function of stored values by interpolation in the table."""
        argument = (value * scale.multiplier + (1 << scale.shift >> 1)) >> scale.shift
        # The table has positive arguments only; the other half follows from the symmetry, with the rounding that LiteRT
        # has.
        return np.where(argument >= 0, *self._from_table(np.abs(argument)))

    @abc.abstractmethod
    def _from_table(self, magnitude: Whole) -> tuple[Whole, Whole]:
        """Return the function of an argument of this ``magnitude`` with positive and with negative sign."""

    @abc.abstractmethod
    def _fixed(self, argument: fixed_point.Raw) -> fixed_point.Raw:
        """Return the function of a raw ``argument`` with ``_INTEGER_BITS``, without integer bits."""

    def _argument_rescale(self, source: Tensor) -> Rescale:
        """Return the rescaling to the fixed-point argument, zero if the scale is too small."""
        # TFLite scales by 2**27, 4 integer bits, before it splits the factor: the argument of int8 is a raw number
        # then.
        fraction, shift = math.frexp(min(source.affine.scale, _LARGEST_SCALE) * (1 << (31 - _INTEGER_BITS)))
        # Below 2**-31 every product is 0, so that the function is that of 0 for all values.
        return Rescale(math.floor(fraction * (1 << 31) + 0.5), shift) if shift >= -31 else Rescale(0, 0)


class Logistic(Sigmoid):
    """1 / (1 + exp(-x))."""

    name = "LOGISTIC"
    output_scale = 1 / 256
    output_zero_point = -128
    most_doublings = 0

    def _from_table(self, magnitude: Whole) -> tuple[Whole, Whole]:
        # 0x7FFF << 10 is just below 1 in the scale of the interpolation: the value of the last entry.
        result = between(magnitude, 9, 0x7FFF << 10)
        # The 1 that is subtracted makes halves of negative arguments round the other way, as in
        # reference/integer_ops/logistic.h.
        return (result + (1 << 9)) >> 10, ((1 << 25) - result + (1 << 9) - 1) >> 10

    def _fixed(self, argument: fixed_point.Raw) -> fixed_point.Raw:
        return fixed_point.logistic(argument, _INTEGER_BITS)

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.asarray(1 / (1 + np.exp(-value)))


class Tanh(Sigmoid):
    """The hyperbolic tangent."""

    name = "TANH"
    function = np.tanh
    output_scale = 1 / 128
    output_zero_point = 0
    most_doublings = 1

    def _from_table(self, magnitude: Whole) -> tuple[Whole, Whole]:
        # tanh(x) = 2 * logistic(2x) - 1: half the bits per step double the argument, and 2**23 is one half.
        result = between(magnitude, 8, 0xFFFF << 8) - (1 << 23)
        return (result + (1 << 7)) >> 8, (-result + (1 << 7) - 1) >> 8

    def _fixed(self, argument: fixed_point.Raw) -> fixed_point.Raw:
        return fixed_point.tanh(argument, _INTEGER_BITS)


def between(magnitude: Whole, fraction_bits: int, greatest: int) -> Whole:
    """Interpolate the table at ``magnitude`` with ``fraction_bits`` per step; beyond its end, return ``greatest``.

    ``magnitude`` is not negative, with ``fraction_bits`` bits between two entries. The result has the 16 fraction bits
    of the table and ``fraction_bits`` more.
    """
    # The table has 256 entries, so that the last step that has an entry behind it is 254.
    step = np.minimum(magnitude >> fraction_bits, 254)
    low, high = LOGISTIC_TABLE[step].astype(np.int64), LOGISTIC_TABLE[step + 1].astype(np.int64)
    rest = magnitude & ((1 << fraction_bits) - 1)
    return np.where(magnitude >> fraction_bits >= 255, greatest, (low << fraction_bits) + rest * (high - low))
