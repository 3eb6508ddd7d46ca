"""Constants with which the int8 kernels for the DSP extension requantise (``kernels/dsp.h``).

These kernels requantise in fewer instructions than the portable ones. This is exact only if nothing overflows, which
``dsp_channels`` checks with the weights of each channel.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Array, DType, Graph, Node, Rescale, Tensor, multiply_by_quantized_multiplier
from mlfbuild.native.graph.bases import Convolution

Int64Array = npt.NDArray[np.int64]

_INT8 = np.iinfo(np.int8)


@dataclass(frozen=True)
class DspChannels:
    """Constants of output channels; int64 arrays with one element per channel."""

    weights: Array
    """int8 [channels, inputs]: the given weights, but zeros for channels whose output is constant."""
    bias: Int64Array
    """Twice the bias, which includes the input's zero point."""
    multiplier: Int64Array
    shift: Int64Array
    """The right shift after the high multiplication, minus 1."""
    brief: bool = False
    """Whether the constants are those of ``brief_channels``: bias and multiplier have another scale, and no shift."""

    def of(self, at: Int64Array) -> DspChannels:
        """Return the channels ``at`` these positions."""
        return DspChannels(self.weights[at], self.bias[at], self.multiplier[at], self.shift[at], self.brief)


def dsp_channels(weights: Array, bias: Array, rescales: Sequence[Rescale], zero_point: int) -> DspChannels | None:
    """Return the constants of channels with int8 ``weights`` [channels, inputs] and the folded int32 ``bias``.

    ``zero_point`` is the output's. ``None`` if twice a sum, or a rescaled sum with rounding and zero point, may need
    more than 32 bits, or if a rescaling has no right shift (a factor of 1/2 or more).
    """
    positive, negative = (side(weights, 0).sum(axis=1, dtype=np.int64) for side in (np.maximum, np.minimum))
    least = bias + _INT8.min * positive + _INT8.max * negative
    greatest = bias + _INT8.max * positive + _INT8.min * negative
    if least.min() < -(1 << 31) or greatest.max() >= 1 << 31:
        return None
    multiplier = np.array([rescale.multiplier for rescale in rescales], np.int64)
    left = np.array([rescale.shift for rescale in rescales], np.int64)
    low, high = (
        np.clip(multiply_by_quantized_multiplier(limit, multiplier, left).astype(np.int64) + zero_point, *_limits())
        for limit in (least, greatest)
    )
    # A constant output c is a sum of 4 (c - zero point), halved twice, without weights. Left shifts may wrap.
    constant = (low == high) & (left <= 0)
    multiplier = np.where(constant, 1 << 30, multiplier)
    shift = np.where(constant, 0, -left - 1)
    least, greatest = (np.where(constant, 4 * (low - zero_point), limit) for limit in (least, greatest))
    magnitude = np.maximum(np.abs(least), np.abs(greatest)) + 1
    added = (np.abs(2 * zero_point + 1) << np.clip(shift, 0, 31)) + 2
    if shift.min() < 0 or magnitude.max() >= 1 << 30 or (magnitude + added).max() >= 1 << 31:
        return None
    kept = np.where(constant[:, None], np.int8(0), weights)
    return DspChannels(kept, 2 * np.where(constant, least, bias.astype(np.int64)), multiplier, shift)


def _limits() -> tuple[int, int]:
    return int(_INT8.min), int(_INT8.max)


@dataclass(frozen=True)
class BriefForm:
    """The brief requantisation, ``((sum * 2**scale + bias) * multiplier + added) >> (32 + shift)``, saturated."""

    scale: int = 8
    shift: int = 9
    """That of ``MLF_BRIEF_DSP``."""
    added: int = 0
    """Less than half of the divisor."""
    tagged: bool = False
    """Whether the lowest four bits of multipliers are the scale."""


_DSP = BriefForm()
_CHANGES = (0, *(sign * change for change in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64) for sign in (1, -1)))
"""Differences from the nearest multiplier that are tried, in steps that move the last of 255 outputs by 2 ** -10."""
_OUTPUTS = np.arange(_INT8.min + 1, _INT8.max + 1, dtype=np.int64)


def brief_channels(channels: DspChannels, zero_point: int, form: BriefForm = _DSP) -> DspChannels:
    """Return ``channels`` with constants for the brief requantisation, or as they are if it would not be exact.

    It takes half the instructions, and rounds once, and negative numbers as others. An output grows with its sum: it is
    exact if each output begins at the same sum.
    """
    brief = brief_where_exact(channels, zero_point, form)
    return brief if brief.multiplier.all() else channels


def brief_where_exact(channels: DspChannels, zero_point: int, form: BriefForm) -> DspChannels:
    """Return constants for the brief requantisation; the multiplier is 0 for channels for which it is not exact."""
    limits = _sums(channels)
    borders = _Borders(_begins(channels, zero_point, *limits), *limits)
    value = (borders.begins <= borders.least[:, None]).sum(axis=1) + _INT8.min
    constant = borders.least == borders.greatest
    bias = np.where(constant, (4 * value + 2) << form.shift, 0)
    multiplier = np.where(constant, 1 << 30, 0)
    for change in _CHANGES:
        missing = np.flatnonzero(multiplier == 0)
        factor = channels.multiplier[missing] * 2.0 ** -(channels.shift[missing] + 32)
        step = np.maximum(np.rint(factor**2 * 2.0 ** (14 + form.shift - form.scale)), 1)
        nearest = factor * 2.0 ** (32 + form.shift - form.scale)
        candidate = np.rint(nearest + change * step).astype(np.int64)
        candidate = candidate & -16 | form.scale if form.tagged else candidate
        offset, exact = borders.of(missing).offset(candidate, form)
        found = missing[exact]
        multiplier[found] = candidate[exact]
        bias[found] = offset[exact] + (channels.bias[found] // 2 << form.scale)
    return DspChannels(channels.weights, bias, multiplier, np.zeros_like(bias), brief=True)


@dataclass(frozen=True)
class _Borders:
    """The sums of channels at which outputs begin."""

    begins: Int64Array
    """As ``_begins`` returns it."""
    least: Int64Array
    greatest: Int64Array

    def of(self, channels: Int64Array) -> _Borders:
        return _Borders(self.begins[channels], self.least[channels], self.greatest[channels])

    def offset(self, multiplier: Int64Array, form: BriefForm) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
        """Return what to add to the scaled sum of each channel, and whether that is exact."""
        scale = form.scale
        far = 1 << 60
        usable = (multiplier > 0) & (multiplier < 1 << 31)
        needed = -((form.added - (_OUTPUTS << 32 + form.shift)) // np.where(usable, multiplier, 1)[:, None])
        lowest = np.where(self.begins <= self.greatest[:, None], needed - (self.begins << scale), -far).max(axis=1)
        before = needed - (self.begins - 1 << scale) - 1
        highest = np.where(self.begins > self.least[:, None], before, far).min(axis=1)
        offset = np.where(lowest == -far, highest, np.where(highest == far, lowest, (lowest + highest) // 2))
        low, high = (self.least << scale) + offset, (self.greatest << scale) + offset
        return offset, usable & (lowest <= highest) & (low >= -(1 << 31)) & (high < 1 << 31)


def _begins(channels: DspChannels, zero_point: int, least: Int64Array, greatest: Int64Array) -> Int64Array:
    """Return the sums [channels, outputs] at which each output but the least begins, by the rules of ``dsp.h``.

    It is ``least`` if all sums give more, ``greatest`` + 1 if none gives as much.
    """
    low, high = (np.repeat(sums[:, None], len(_OUTPUTS), axis=1) for sums in (least, greatest + 1))
    multiplier, shift = channels.multiplier[:, None], channels.shift[:, None]
    while (low < high).any():
        middle = (low + high) >> 1
        product = (2 * middle * multiplier + (1 << 31)) >> 32
        result = ((product + (middle >> 63) + (1 << shift)) >> (shift + 1)) + zero_point
        enough = result >= _OUTPUTS
        high = np.where(enough, middle, high)
        low = np.where(enough, low, np.minimum(middle + 1, high))
    return low


def _sums(channels: DspChannels) -> tuple[Int64Array, Int64Array]:
    """Return the least and the greatest sum of each channel for any inputs."""
    weights, bias = channels.weights.astype(np.int64), channels.bias // 2
    positive, negative = np.maximum(weights, 0).sum(axis=1), np.minimum(weights, 0).sum(axis=1)
    return bias + _INT8.min * positive + _INT8.max * negative, bias + _INT8.max * positive + _INT8.min * negative


_SPARE = "\0spare"
"""The beginning of the names of tensors that stand for the complete images of a chain."""


def tensors_beside_rows(size: int, count: int) -> list[Tensor]:
    """Return tensors for the graph of a call on a few rows, so that it may use ``size`` bytes of scratch memory."""
    return [Tensor(f"{_SPARE}{at}", (size,), DType.INT8) for at in range(count)]


def is_of_few_rows(graph: Graph) -> bool:
    """Return whether the call that is lowered is for a few rows, beside line buffers."""
    return f"{_SPARE}0" in graph.tensors


def spare_memory(graph: Graph, node: Node, *, strided: bool = False) -> int:
    """Return the network's peak of bytes in use minus the bytes in use while ``node`` runs.

    Scratch memory of this size does not enlarge the arena. Convolutions count as in place if they can be; ``strided``:
    those over each channel can be with any stride.
    """
    kept = {*graph.sources, *graph.results}
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, each in enumerate(graph.nodes):
        for name in (*each.inputs, *each.outputs):
            if name is not None and name not in kept and not graph.tensor(name).constant:
                first.setdefault(name, index)
                last[name] = index
    changes = [0] * (len(graph.nodes) + 1)
    for name, index in first.items():
        changes[index] += graph.tensor(name).size
        changes[last[name] + 1] -= graph.tensor(name).size
    used = [
        total - (_shared(graph, each, strided) if last.get(str(each.inputs[0])) == index else 0)
        for index, (each, total) in enumerate(zip(graph.nodes, itertools.accumulate(changes), strict=False))
    ]
    return max(used) - used[graph.nodes.index(node)]


def _shared(graph: Graph, node: Node, strided: bool) -> int:
    """Return the bytes that input and output of a convolution share if it is done in place; 0 if it cannot be."""
    source, weights = graph.inputs_of(node)[:2] if len(node.inputs) > 1 else (None, None)
    output = graph.outputs_of(node)[0]
    operator = node.operator
    if not isinstance(operator, Convolution) or source is None or weights is None:
        return 0
    one = operator.stride == (1, 1)
    within_channels = operator.channel_axis == 3 and (source.shape == output.shape if one else strided)
    within_pixels = operator.channel_axis == 0 and weights.shape[1:3] == (1, 1) and one
    return min(source.size, output.size) if within_channels or within_pixels else 0
