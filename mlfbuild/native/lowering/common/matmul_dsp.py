"""Pack the filter of ``kernels/dsp/matmul_dsp.h``: weights of two output channels per word, then their parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Array
from mlfbuild.native.lowering.common.dsp import DspChannels

_GROUP = 4
"""Inputs per word; rows are padded to whole groups."""

_ORDER = ((0, 2), (1, 3))
"""The inputs of a group that share a word of weights, in the order in which SXTB16 expands bytes."""


def pack_matmul(channels: DspChannels, *, whole: bool) -> npt.NDArray[np.int32] | None:
    """Return the filter of ``channels``; ``None`` if there is only one channel or sums would not be exact.

    They are not exact if two weights do not fit in 16 bits together. A kernel that adds the ``whole`` sum of the second
    channel of a pair in 24 bits also requires that this sum fits.
    """
    count = len(channels.weights)
    if count < 2:
        return None
    # An odd number of channels ends with the last two, one of which is computed twice: cheaper than code for a single
    # one.
    even = np.array([*range(0, count - 1, 2), *([count - 2] if count % 2 else [])])
    odd = even + 1
    weights = _padded(channels.weights)
    words = pair_words(weights[even], weights[odd], whole=whole)
    if words is None:
        return None
    biases = channels.bias[even], channels.bias[odd]
    multipliers = channels.multiplier[even], channels.multiplier[odd]
    if channels.brief:
        before, behind = biases[1], [biases[0], *multipliers]
    else:
        before, behind = 0 * even, [*biases, *multipliers, channels.shift[even] | channels.shift[odd] << 8]
    parts = [before[:, None], words.reshape(len(even), -1), np.stack(behind, axis=1)]
    return np.concatenate([part.astype(np.int32) for part in parts], axis=1).reshape(-1)


def pack_dot_1x4(channels: DspChannels) -> npt.NDArray[np.int32] | None:
    """Return the filter of ``dot_1x4_dsp.h``; ``None`` as ``pack_matmul`` with the whole sums of odd channels.

    The number of channels is a multiple of four, and so is that of their inputs.
    """
    words = pair_words(channels.weights[0::2], channels.weights[1::2], whole=True)
    if words is None:
        return None
    bias, multiplier, shift = (
        each.reshape(-1, 4) for each in (channels.bias, channels.multiplier, channels.shift.astype(np.int64))
    )
    count = len(bias)
    excess = _excess(channels.weights[0::2]).reshape(count, 2)
    weights = words.reshape(count, 2, -1, 2).transpose(0, 2, 3, 1).reshape(count, -1)
    if channels.brief:
        even = bias[:, 0::2] - 256 * excess
        parts: list[npt.NDArray[Any]] = [bias[:, 1::2] + excess, weights, even, multiplier]
    else:
        shifts = (shift << 8 * np.arange(4)).sum(axis=1, keepdims=True)
        own = bias - 2 * np.stack([excess, 0 * excess], axis=2).reshape(count, 4)
        parts = [excess, weights, own, multiplier, shifts]
    return np.concatenate([part.astype(np.int64).astype(np.int32) for part in parts], axis=1).reshape(-1)


def _excess(weights: Array) -> npt.NDArray[np.int64]:
    """Return int64 [channels]: the sums of the products of weights that ``dot_1x4_dsp.h`` adds to those of inputs."""
    products = weights[:, 0::2].astype(np.int64) * weights[:, 1::2]
    sums: npt.NDArray[np.int64] = products.sum(axis=1)
    return sums


def pair_words(even: Array, odd: Array, *, whole: bool) -> npt.NDArray[np.int32] | None:
    """Return int32 [channels, groups, 2]: int8 weights [channels, inputs] of two channels that share a word.

    The number of inputs is a multiple of four. ``None`` as ``pack_matmul`` describes.
    """
    halves = 256 * odd.astype(np.int32) + even
    # Only 256 * -128 plus a negative number leaves 16 bits.
    if halves.min() < -(1 << 15) or halves.max() >= 1 << 15:
        return None
    # The kernel divides the difference of two sums of 32 bits by 256, so 24 bits are left for the odd channel.
    if whole and 128 * np.abs(odd, dtype=np.int16).sum(axis=1, dtype=np.int64).max() >= 1 << 23:
        return None
    groups = halves.reshape(len(even), -1, _GROUP) & 0xFFFF
    return np.stack([groups[:, :, low] | groups[:, :, high] << 16 for low, high in _ORDER], axis=2)


def groups_of(inputs: int) -> int:
    """Return the number of groups of four for ``inputs``, rounded up."""
    return -(-inputs // _GROUP)


def _padded(weights: Array) -> Array:
    # Zeros, so that the bytes after the last input do not matter.
    missing = -weights.shape[1] % _GROUP
    return np.pad(weights, ((0, 0), (0, missing))) if missing else weights
