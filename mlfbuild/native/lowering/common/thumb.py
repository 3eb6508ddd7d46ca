"""Filters of the int8 kernels for cores with Thumb instructions and without SIMD (``kernels/thumb/thumb.h``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mlfbuild.native.lowering.common.dsp import DspChannels, dsp_channels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mlfbuild.native.graph import Array, Rescale

GROUP = 4
"""Weights in a word."""

# The largest product of an input is 128 times the sum of the weights' magnitudes: 128 * 255 < 2**15.
MAGNITUDES = 255
"""Inputs times weights whose magnitudes add up to this fit in 16 bits."""

_NARROW, _WIDE = (20, 20), (23, 24)
"""Bits of sums that the requantisation in three and in four pieces supports, and the bits below the highest piece."""


@dataclass(frozen=True)
class ThumbChannels:
    """Constants of output channels, and whether the short requantisation is exact for all of them."""

    weights: Array
    """int8 [channels, inputs], padded to whole groups."""
    parameters: npt.NDArray[np.int64]
    """Bias, multiplier and right shift + 11, which is below 64: [channels, 3]."""
    positive: bool
    """Whether sums are below 2**20, and negative ones give the minimum of the activation."""


def thumb_channels(
    weights: Array, bias: Array, rescales: Sequence[Rescale], zero_point: int, minimum: int
) -> ThumbChannels | None:
    """Return the constants of channels with int8 ``weights`` [channels, inputs] and the folded int32 ``bias``.

    ``zero_point`` is the output's and ``minimum`` that of the activation. ``None`` if sums, or rescaled sums with
    rounding and zero point, do not fit the requantisation, or if a weight is -128, of which two do not fit in 16 bits.
    """
    # -128 * -128 is 2**14, and twice that does not fit into a signed half word.
    if weights.min(initial=0) == np.iinfo(np.int8).min:
        return None
    channels = dsp_channels(weights, bias, rescales, zero_point)
    if channels is None:
        return None
    folded, exponent = channels.bias // 2, channels.shift + 1
    largest = np.abs(folded) + 128 * np.abs(channels.weights, dtype=np.int64).sum(axis=1, dtype=np.int64)
    if not _fits(_WIDE, largest, channels, zero_point):
        return None
    # After a ReLU all negative sums give the minimum; narrow ones need one piece of the product less.
    positive = minimum >= zero_point and _fits(_NARROW, largest, channels, zero_point)
    padded = np.pad(channels.weights, ((0, 0), (0, -channels.weights.shape[1] % GROUP)))
    parameters = np.stack([folded, channels.multiplier, exponent + 11], axis=1)
    return ThumbChannels(padded, parameters, positive)


def _fits(limits: tuple[int, int], largest: npt.NDArray[np.int64], channels: DspChannels, zero_point: int) -> bool:
    """Return whether sums up to ``largest`` are below the limit, and nothing overflows when they are rescaled."""
    bits, below = limits
    point = 31 - below  # the bits of a rescaled sum below those of the product with the multiplier
    addend = (abs(2 * zero_point + 1) << np.clip(channels.shift + point, 0, 40)) + (2 << point)
    rescaled = (largest * channels.multiplier >> below) + largest
    return bool(largest.max() < 1 << bits and (rescaled + addend).max() < 1 << 31)


def pack_channels(channels: ThumbChannels) -> npt.NDArray[np.int32]:
    """Return the filter of ``dot_4x1_thumb.h``."""
    groups = channels.weights.reshape(len(channels.weights), -1, GROUP)
    large = np.abs(groups, dtype=np.int16).sum(axis=2).max(axis=1) > MAGNITUDES
    bias, multiplier, shift = channels.parameters.T
    words = np.ascontiguousarray(groups).view("<i4")[:, :, 0]
    packed = np.column_stack([bias << 8 | shift, multiplier | large.astype(np.int64) << 31, words])
    return packed.astype(np.uint32).view(np.int32).reshape(-1)


def pack_fours(channels: ThumbChannels, inputs: int) -> npt.NDArray[np.int32]:
    """Return the filter of ``dot_1x4_thumb.h`` of at least four channels; the last group is the last four."""
    count = len(channels.weights)
    firsts = [*range(0, count - GROUP + 1, GROUP), *([count - GROUP] if count % GROUP else [])]
    groups = np.array(firsts)[:, None] + np.arange(GROUP)
    a, b, c, d = channels.weights[groups, :inputs].astype(np.int64).transpose(1, 0, 2)
    words = (256 * b + a & 0xFFFF) | (256 * d + c + 128 & 0xFFFF) << 16
    bias, multiplier, shift = channels.parameters[groups].transpose(2, 0, 1)
    packed = np.concatenate([bias << 8 | shift, multiplier, words], axis=1)
    return packed.astype(np.uint32).view(np.int32).reshape(-1)
