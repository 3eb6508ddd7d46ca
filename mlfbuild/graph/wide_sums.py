"""Rescaling of 64-bit sums of int16 activations, as in TensorFlow Lite Micro's reference kernels.

The multiplier of a factor has 15 bits, and the product is rounded once, half up; for 32-bit sums it has 31 bits, and
products are rounded twice (``quantize.py``). A result that does not fit into 32 bits wraps.

Layers of ONNX networks whose sums fit into 32 bits have ``fine`` factors, with 32 bits after the point: 15 bits are off
by up to half a step of int16.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.graph.quantize import Int32Array, Rescale, round_half_away
from mlfbuild.graph.types import Array

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
    multiplier = min((rescale.multiplier + (1 << 15)) >> 16, (1 << _MULTIPLIER_BITS) - 1)
    return WideRescale(multiplier, _MULTIPLIER_BITS - rescale.shift)


def fine_multiplier(rescale: Rescale) -> int:
    """Return the factor of ``rescale`` times 2**32, rounded; raises ``OverflowError`` for a factor of 1/2 or more."""
    multiplier = int(round_half_away(np.array(math.ldexp(rescale.multiplier, rescale.shift + 1))))
    if multiplier >= 1 << 31:
        raise OverflowError("cannot rescale sums of 32 bits by 1/2 or more")
    return multiplier


def rescale_fine(sums: Array, rescales: Sequence[Rescale]) -> Int32Array:
    """Return int64 ``sums`` (channels last, within 32 bits) times the factor of each channel, rounded once, half up."""
    multiplier = np.array([fine_multiplier(rescale) for rescale in rescales], np.int64)
    return np.asarray((sums * multiplier + (1 << 31)) >> 32, np.int64).astype(np.int32)


def rescale_wide(sums: Array, rescales: Sequence[Rescale]) -> Int32Array:
    """Return int64 ``sums`` (channels last, below ``LARGEST_SUM``) times the factor of each channel, or one for all."""
    wide = [wide_rescale(rescale) for rescale in rescales]
    multiplier = np.array([factor.multiplier for factor in wide], np.int64)
    shift = np.array([factor.right_shift for factor in wide], np.int64)
    half = np.left_shift(np.int64(1), shift - 1)
    return np.asarray((sums * multiplier + half) >> shift, np.int64).astype(np.int32)
