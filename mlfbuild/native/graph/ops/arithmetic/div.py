"""DIV."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from mlfbuild.native.graph.bases.accumulate import Sums
from mlfbuild.native.graph.bases.binary import WHOLE, Arithmetic
from mlfbuild.native.graph.fixed_point import bit_lengths, high_multiply, reciprocal_of_one_plus, shift_right
from mlfbuild.native.graph.quantize import Rescale, activation_range
from mlfbuild.native.graph.rescales import divide_rescale
from mlfbuild.native.graph.tensors import Array, DType, Tensor


class Div(Arithmetic):
    """Element-wise quotient, truncated for int32 and int64.

    If the divisor is 0, a quantised quotient is the greatest or the least value, by the sign of the dividend, or 0 if
    that is also 0; an int32 or int64 quotient is 0.
    """

    rounded_quotient: bool = field(default=False, repr=False)
    """Whether the quotient of int8 scales is computed in float32, as LiteRT does for uint8."""

    name = "DIV"
    types = (DType.INT8, DType.INT16, *WHOLE, DType.FLOAT32)

    def numbers(self, first: Tensor, second: Tensor, output: Tensor) -> Rescale:
        return divide_rescale(first, second, output, rounded=self.rounded_quotient)

    def _exact(self, x: Array, y: Array) -> Array:
        return x / y

    def _whole(self, x: Array, y: Array) -> Array:
        # The least integer divided by -1 does not fit: undefined in C, and here it wraps, as the negative does.
        divisor = np.where((y == 0) | (y == -1), 1, y)
        floor = x // divisor
        # NumPy rounds down, C towards zero.
        quotient = floor + ((floor < 0) & (floor * divisor != x))
        return np.where(y == 0, 0, np.where(y == -1, np.negative(x), quotient)).astype(x.dtype)

    def _quantized(self, tensors: tuple[Tensor, Tensor, Tensor], x: Sums, y: Sums) -> Array:
        """Multiply by a fixed-point reciprocal of the divisor's magnitude, then by the scales."""
        output, rescale = tensors[2], self.numbers(*tensors)
        # The sign goes to the dividend, because the reciprocal is made of a magnitude.
        dividend = np.where(y < 0, -x, x).astype(np.int64)
        divisor = np.maximum(np.abs(y), 1).astype(np.int64)
        divisor_headroom = 32 - bit_lengths(divisor)
        # A negative number has as many bits as its complement: -128 fits into 7 bits and the sign.
        headroom = 31 - bit_lengths(np.where(dividend < 0, ~dividend, dividend))
        # The divisor is scaled to [1, 2), the range of the iteration; the shift below removes the scaling.
        inverse = reciprocal_of_one_plus((divisor << divisor_headroom) - (1 << 31))
        quotient = high_multiply(high_multiply(dividend << headroom, inverse), rescale.multiplier)
        # The quotient is below 2**31, so it is 0 after a longer shift, which is undefined in C.
        right_shift = headroom + 31 - divisor_headroom - rescale.shift
        stored = np.where(right_shift > 31, 0, shift_right(quotient, np.minimum(right_shift, 31)))
        # 2**16 is beyond the range of int8 and int16 with any zero point: a division by 0 saturates by the dividend's
        # sign, and 0 / 0 is 0. LiteRT Micro stops there.
        stored = np.where(y == 0, np.sign(dividend) << 16, stored) + output.affine.zero_point
        return np.clip(stored, *activation_range(self.activation, output)).astype(output.dtype.numpy)
