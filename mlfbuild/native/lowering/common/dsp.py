"""Constants with which the int8 kernels for the DSP extension requantise (``kernels/dsp/dsp.h``).

The reference rounds a sum twice: in the doubling high multiply, and in the right shift (``graph/quantize``). In
portable C that is a product of 64 bits and some comparisons for each output. The kernels have two shorter forms, and
this module proves, from the weights and the bias of each channel, which one gives the same bytes.

1. The usual form (``dsp_channels``), 6 instructions: SMMULR with twice the sum, and a right shift. It needs that twice
   the sum, and the rescaled sum with rounding and zero point, fit into 32 bits. The least and the greatest sum follow
   from the weights: a positive weight is worst with the input -128 or 127, a negative one with the opposite.
2. The brief form (``brief_channels``), 3 instructions: ``((sum * 256 + bias) * multiplier) >> 41``, saturated. It
   rounds once. An output grows with its sum, so it is exact if each of the 255 outputs above -128 begins at the same
   sum.

How a brief multiplier and bias are found:

- ``_begins`` computes for each output the sum at which it begins in the reference. Rounding twice moves a border by a
  few sums, so that a short bisection around the exact border is enough.
- A multiplier permits an interval of biases for each output: the output must be reached at its border, and not one sum
  before. The multiplier is right if the intervals of all outputs have a common bias, and no sum overflows.
- The nearest multiplier is tried first, then 24 others around it, first with few outputs, which rules out most.

That succeeds if negative results saturate, as after a ReLU with the zero point -128. Otherwise the reference rounds
halves of both signs away from zero, which no single shift does: such layers keep the usual form.

For example, one channel with the weights 3, -2, 5 and 1, the bias 40, the factor 0.05 and the zero point -128::

    sums       -1366 to 1439, 2806 different ones
    usual      multiplier 1717986918, shift 3 (the right shift minus 1), bias 80 (twice)
    brief      multiplier 429496730, bias -642432, which is 40 * 256 - 652672
    borders    -127 begins at the sum 10, -126 at 30, ..., in both forms

Channels whose output is the same for all inputs get weights of zero: they need no proof, and cost nothing.

``spare_memory`` is the other half of this module: the bytes that scratch memory may have without raising the network's
peak. It is an estimate over the graph, because the plan is made after lowering and depends on it.

Kernels for Helium have the same brief form with other constants (``BriefForm``, ``mve.py``), those for Thumb the usual
one with limits of their own (``thumb.py``). If neither form is exact, the portable kernel computes the layer.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Array, DType, Graph, Node, Rescale, Tensor, multiply_by_quantized_multiplier
from mlfbuild.native.graph.bases import Convolution, convolution_tensors

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
    # The portable kernel lets such sums wrap, as the reference does; this one would not give the same.
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
    # One more, because the sign of a negative sum is subtracted before the shift.
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
_BLOCK = 64
"""Channels for which all differences are tried together, in about 10 MB."""
# The least output has no beginning: all smaller sums give it.
_OUTPUTS = np.arange(_INT8.min + 1, _INT8.max + 1, dtype=np.int64)
# Eight outputs rule out most multipliers, and 43 nearly all of the rest.
_FEW_OUTPUTS, _SOME_OUTPUTS, _ALL_OUTPUTS = slice(None, None, 32), slice(None, None, 6), slice(None)
_NEAR = 8
"""Sums around the exact border between two outputs in which the border after two roundings is expected."""


def brief_channels(channels: DspChannels, zero_point: int, form: BriefForm = _DSP) -> DspChannels:
    """Return ``channels`` with constants for the brief requantisation, or as they are if it would not be exact.

    It takes half the instructions, but rounds only once, and rounds halves of negative numbers in the same direction as
    those of positive ones. An output grows with its sum: it is exact if each output begins at the same sum.
    """
    brief = brief_where_exact(channels, zero_point, form)
    return brief if brief.multiplier.all() else channels


def brief_where_exact(channels: DspChannels, zero_point: int, form: BriefForm) -> DspChannels:
    """Return constants for the brief requantisation; the multiplier is 0 for channels for which it is not exact.

    The result has the weights of ``channels``, and its shifts are 0, as the brief form has none. ``form`` says how a
    kernel rounds; results for equal arguments are kept.
    """
    arrays = (*_sums(channels), channels.bias, channels.multiplier, channels.shift)
    bias, multiplier = _brief_constants(*(array.astype(np.int64).tobytes() for array in arrays), zero_point, form)
    return DspChannels(channels.weights, bias.copy(), multiplier.copy(), np.zeros_like(bias), brief=True)


@functools.lru_cache(maxsize=512)
def _brief_constants(
    least: bytes, greatest: bytes, biases: bytes, multipliers: bytes, shifts: bytes, zero_point: int, form: BriefForm
) -> tuple[Int64Array, Int64Array]:
    """Return bias and multiplier of channels, whose constants are the bytes of int64 arrays.

    Constants of a layer are computed again when it is printed, compared, or lowered for a part of its rows.
    """
    low, high, own, factors, right = (
        np.frombuffer(data, np.int64) for data in (least, greatest, biases, multipliers, shifts)
    )
    borders = _Borders(_begins(low, high, factors, right, zero_point), low, high)
    value = (borders.begins <= low[:, None]).sum(axis=1) + _INT8.min
    constant = low == high
    bias = np.where(constant, (4 * value + 2) << form.shift, 0)
    multiplier = np.where(constant, 1 << 30, 0)
    for changes in (_CHANGES[:1], _CHANGES[1:]):
        missing = np.flatnonzero(multiplier == 0)
        for part in (missing[at : at + _BLOCK] for at in range(0, len(missing), _BLOCK)):
            factor = factors[part] * 2.0 ** -(right[part] + 32)
            # A change of one step moves the border of the last output by 2**-10 of a sum, whatever the factor is.
            step = np.maximum(np.rint(factor**2 * 2.0 ** (14 + form.shift - form.scale)), 1)
            nearest = factor * 2.0 ** (32 + form.shift - form.scale)
            candidates = np.rint(nearest[:, None] + np.outer(step, changes)).astype(np.int64).reshape(-1)
            # The lowest four bits are the power of two, so that kernels need no third number.
            candidates = candidates & -16 | form.scale if form.tagged else candidates
            exact, offset = borders.offsets(np.repeat(part, len(changes)), candidates, form)
            _, first = np.unique(exact // len(changes), return_index=True)
            found = part[exact[first] // len(changes)]
            multiplier[found] = candidates[exact[first]]
            bias[found] = offset[first] + (own[found] // 2 << form.scale)
    return bias, multiplier


@dataclass(frozen=True)
class _Borders:
    """The sums of channels at which outputs begin."""

    begins: Int64Array
    """As ``_begins`` returns it."""
    least: Int64Array
    greatest: Int64Array

    def offsets(self, channels: Int64Array, multiplier: Int64Array, form: BriefForm) -> tuple[Int64Array, Int64Array]:
        """Return which of ``channels`` a ``multiplier`` suits, and what to add to the scaled sum of each of these.

        Few outputs suffice to rule out most multipliers.
        """
        at = np.flatnonzero((multiplier > 0) & (multiplier < 1 << 31))
        for outputs in (_FEW_OUTPUTS, _SOME_OUTPUTS, _ALL_OUTPUTS):
            offset, exact = self._offset(channels[at], multiplier[at], form, outputs)
            at, offset = at[exact], offset[exact]
        return at, offset

    def _offset(
        self, channels: Int64Array, multiplier: Int64Array, form: BriefForm, outputs: slice
    ) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
        """Return what to add to the scaled sum of each of ``channels``, and whether that is exact for ``outputs``."""
        scale, far, begins = form.scale, 1 << 60, self.begins[channels, outputs]
        least, greatest = self.least[channels], self.greatest[channels]
        needed = -((form.added - (_OUTPUTS[outputs] << 32 + form.shift)) // multiplier[:, None])
        lowest = np.where(begins <= greatest[:, None], needed - (begins << scale), -far).max(axis=1)
        before = needed - (begins - 1 << scale) - 1
        highest = np.where(begins > least[:, None], before, far).min(axis=1)
        # The middle of what is possible is farthest from both ends.
        offset = np.where(lowest == -far, highest, np.where(highest == far, lowest, (lowest + highest) // 2))
        low, high = (least << scale) + offset, (greatest << scale) + offset
        whole = outputs == _ALL_OUTPUTS
        inside = (low >= -(1 << 31)) & (high < 1 << 31) if whole else np.True_
        return offset, (lowest <= highest) & inside


def _begins(
    least: Int64Array, greatest: Int64Array, multiplier: Int64Array, shift: Int64Array, zero_point: int
) -> Int64Array:
    """Return the sums [channels, outputs] at which each output but the least begins, by the rules of ``dsp.h``.

    It is ``least`` if all sums give more, ``greatest`` + 1 if none gives as much.
    """
    first, last, factor, right = (array[:, None] for array in (least, greatest + 1, multiplier, shift))

    def enough(sums: Int64Array) -> npt.NDArray[np.bool_]:
        product = (2 * sums * factor + (1 << 31)) >> 32
        reached: npt.NDArray[np.bool_] = (
            (product + (sums >> 63) + (1 << right)) >> (right + 1)
        ) + zero_point >= _OUTPUTS
        return reached

    # Rounding twice moves a border by a few sums only; a bracket that does not hold the border is widened.
    # The border if it were rounded once, exactly.
    near = np.rint((_OUTPUTS - zero_point - 0.5) * 2.0 ** (right + 32) / np.maximum(factor, 1))
    low, high = (np.clip(near + way, first, last).astype(np.int64) for way in (-_NEAR, _NEAR))
    low = np.where((low > first) & enough(low - 1), first, low)
    high = np.where((high < last) & ~enough(high), last, high)
    while (low < high).any():
        middle = (low + high) >> 1
        found = enough(middle)
        high = np.where(found, middle, high)
        low = np.where(found, low, np.minimum(middle + 1, high))
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
    """Return whether the call that is lowered is for a few rows, beside line buffers.

    Such calls may use any amount of scratch memory in their own graph, so that kernels must limit it themselves.
    """
    return f"{_SPARE}0" in graph.tensors


def spare_memory(graph: Graph, node: Node, *, strided: bool = False) -> int:
    """Return the network's peak of bytes in use minus the bytes in use while ``node`` runs.

    Scratch memory of this size does not enlarge the arena. Convolutions count as in place if they can be; ``strided``:
    those over each channel can be with any stride.
    """
    # Not in the arena: the buffers of the caller and states.
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
    operator = node.operator
    if not isinstance(operator, Convolution):
        return 0
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    one = operator.stride == (1, 1)
    within_channels = operator.channel_axis == 3 and (source.shape == output.shape if one else strided)
    within_pixels = operator.channel_axis == 0 and weights.shape[1:3] == (1, 1) and one
    return min(source.size, output.size) if within_channels or within_pixels else 0
