"""Rescaling of 64-bit sums of int16 activations, as in TensorFlow Lite Micro's reference kernels.

A layer with int16 activations and int8 weights has products of 23 bits, so that 512 of them can fill 32 bits. Sums
therefore have 64 bits, and are rescaled differently from those of int8. There are three ways, and the type of the bias
and the format of the model decide which one applies:

- narrow: with an int32 bias, sums are taken modulo 2**32 and rescaled as those of int8, with two roundings.
- wide: with an int64 bias, sums have 64 bits. The multiplier is cut to 15 bits, so that its product with a sum of 48
  bits fits into 64, and the product is rounded once, half up. Without a bias, ``int32_sums`` of the operator decides.
- fine: of ONNX networks whose sums are proven to fit into 32 bits. The factor has 32 bits after the point, and the
  product is rounded once, half up. TensorFlow Lite Micro is not the reference for such networks, and 15 bits are off
  by up to half a step of int16.

Source of the first two: ``MultiplyByQuantizedMultiplier`` for int32 and for int64 in
tensorflow/lite/kernels/internal/common.cc; TensorFlow Lite Micro selects it by the type of the bias.

The rules:

1. A wide multiplier is ``(multiplier + 2**15) >> 16``, at most 2**15 - 1: the value 2**15 does not fit in 15 bits.
2. The right shift is 15 - shift, from 8 to 46. A factor of 2**7 or more would need a shift below 8, and its result is
   undefined in TensorFlow Lite Micro: it is refused.
3. Sums stay below ``LARGEST_SUM``, 2**47. ``bases/weighted`` checks the weights and the bias of each layer against half
   of it, and ``ops/recurrent/lstm`` those of gates.
4. A result that does not fit into 32 bits wraps around, before it is clamped to int16.

For example, the factor 0.00213 is 1170979884 * 2**(-8 - 31)::

    narrow   multiplier 1170979884, shift -8     234 -> 1    two roundings
    wide     multiplier 17868, right shift 23    234 -> 0    the factor is 0.00213003
    fine     multiplier 9148280, shift 32        234 -> 0

The wide factor is off by 0.0015 %, which is half a step at the largest int16 and nothing for small sums. So the choice
is visible in outputs, and belongs to the operator (``fine`` of convolutions and FULLY_CONNECTED), not to the kernel.

Kernels for DSP and Helium add in 32 bits if the weights permit that, with the same results (``narrow_channels`` in
``lowering/convolution/conv2d_int16_dsp``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.library import round_half_away
from mlfbuild.native.graph.quantize import Int32Array, Rescale
from mlfbuild.native.graph.tensors import Array

LARGEST_SUM = 1 << 47
"""The product of a smaller sum and a multiplier fits into 64 bits."""

_MULTIPLIER_BITS = 15
_LARGEST_SHIFT = 7


@dataclass(frozen=True)
class WideRescale:
    """A real factor as ``multiplier / 2**right_shift``, the multiplier of at most 15 bits, the shift of 8 to 46."""

    multiplier: int
    right_shift: int


def wide_rescale(rescale: Rescale) -> WideRescale:
    """Return ``rescale`` with a multiplier rounded to 15 bits.

    Raises ``OverflowError`` for a factor of 2**7 or more, whose result is undefined in TensorFlow Lite Micro.
    """
    if rescale.shift > _LARGEST_SHIFT:
        raise OverflowError(f"cannot rescale sums of 64 bits by 2**{_LARGEST_SHIFT} or more")
    # From 0x7FFF0000 on, rounding would give 2**15. TensorFlow Lite tests for that number.
    multiplier = min((rescale.multiplier + (1 << 15)) >> 16, (1 << _MULTIPLIER_BITS) - 1)
    # The total shift of 15 - shift includes the 15 bits of the multiplier.
    return WideRescale(multiplier, _MULTIPLIER_BITS - rescale.shift)


def fine_multiplier(rescale: Rescale) -> int:
    """Return the factor of ``rescale`` times 2**32, rounded; raises ``OverflowError`` for a factor of 1/2 or more.

    The factor is exact to 2**-33, as ONNX networks of 16 bits need it. With the 15 bits of TFLite's factors, their
    results would move by several steps.
    """
    # multiplier * 2**(shift - 31) times 2**32.
    multiplier = int(round_half_away(np.array(math.ldexp(rescale.multiplier, rescale.shift + 1))))
    if multiplier >= 1 << 31:
        raise OverflowError("cannot rescale sums of 32 bits by 1/2 or more")
    return multiplier


def rescale_fine(sums: Array, rescales: Sequence[Rescale]) -> Int32Array:
    """Return int64 ``sums`` (channels last, within 32 bits) times the factor of each channel, rounded once, half up.

    ``rescales`` has one factor, or one for each channel, each less than 1/2. The result is
    int32, before it is clamped to the range of the output.
    """
    multiplier = np.array([fine_multiplier(rescale) for rescale in rescales], np.int64)
    # Half of 2**32 before the shift rounds a half up, towards plus infinity.
    return np.asarray((sums * multiplier + (1 << 31)) >> 32, np.int64).astype(np.int32)


def rescale_wide(sums: Array, rescales: Sequence[Rescale]) -> Int32Array:
    """Return int64 ``sums`` (channels last, below ``LARGEST_SUM``) times the factor of each channel, or one for all.

    Rounded once, half up, and not clamped: a result beyond 32 bits wraps. Raises ``OverflowError`` like
    ``wide_rescale``.
    """
    wide = [wide_rescale(rescale) for rescale in rescales]
    multiplier = np.array([factor.multiplier for factor in wide], np.int64)
    shift = np.array([factor.right_shift for factor in wide], np.int64)
    # ``shift`` is at least 8, so that the shift by one less is defined.
    half = np.left_shift(np.int64(1), shift - 1)
    return np.asarray((sums * multiplier + half) >> shift, np.int64).astype(np.int32)
