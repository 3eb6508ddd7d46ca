"""Rescaling of integer sums with one rounding, half to even, as QuantizeLinear of ONNX rounds the mean of real numbers.

gemmlowp's product (``quantize.py``) is rounded to a whole number before it is shifted right, which moves one mean of
four pixels in five by a step, because such sums have few bits. Here a sum is shifted left first, so that the product
has at least 8 bits after the point, 20 in usual pools.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlfbuild.native.graph.fixed_point import high_multiply
from mlfbuild.native.graph.quantize import Int32Array, quantize_multiplier
from mlfbuild.native.graph.tensors import Array

_SUM_BITS = 30
"""A sum shifted left is below 2**30, so that a product with half a step still fits into 32 bits."""

_LEAST_SHIFT, _LARGEST_SHIFT = 8, 30


@dataclass(frozen=True)
class HalfEvenRescale:
    """A real factor as ``multiplier * 2**(left_shift - right_shift - 31)``."""

    multiplier: int
    left_shift: int
    right_shift: int


def half_even_rescale(real: float, largest: int) -> HalfEvenRescale:
    """Return the factor ``real`` for sums whose magnitude is at most ``largest``.

    Raises ``OverflowError`` if a product would have fewer than 8 bits after the point, or more than 30.

    ``largest`` is in stored units after the zero points are subtracted. The result fits ``rescale_half_even``, which
    expects sums within that bound.
    """
    rescale = quantize_multiplier(real)
    # As many bits as the largest sum leaves free, because each of them is a bit after the point of the product.
    left = _SUM_BITS - largest.bit_length()
    left = min(left, _LARGEST_SHIFT + rescale.shift)
    right = left - rescale.shift
    # Less precision than 8 bits would show as wrong roundings, so that the caller refuses the network instead.
    if left < 0 or right < _LEAST_SHIFT or rescale.multiplier == 0:
        raise OverflowError(f"cannot rescale sums of up to {largest} by {real:g} with one rounding")
    return HalfEvenRescale(rescale.multiplier, left, right)


def rescale_half_even(sums: Array, rescale: HalfEvenRescale) -> Int32Array:
    """Return whole ``sums`` times the factor.

    The result is the nearest integer, half to even, as int32 and not clamped. The zero point is not added.
    """
    product = high_multiply(sums.astype(np.int64) << rescale.left_shift, rescale.multiplier)
    # Half a step minus one, and one more if the quotient is odd: only then is an exact half rounded up, to an even
    # number.
    half = (1 << (rescale.right_shift - 1)) - 1 + ((product >> rescale.right_shift) & 1)
    return np.asarray((product + half) >> rescale.right_shift).astype(np.int32)
