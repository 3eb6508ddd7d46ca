"""Shared by int8 operators for Helium (MVE): the order of weights, channels in groups of four, names of kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from mlfbuild.library.cgen import braces
from mlfbuild.native.graph import Array, Rescale, Tensor
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.native.lowering.call import Constant, Parameter, record_words
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.dsp import BriefForm, DspChannels, brief_channels, brief_where_exact, dsp_channels
from mlfbuild.native.lowering.common.layer import Weighted, WeightedOperator, int8_parameters
from mlfbuild.native.lowering.common.parameters import array

VECTOR = 16
"""Bytes of a vector."""
GROUP = 4
"""Output channels that a kernel computes together."""
# Scatter stores have unsigned offsets of 16 bits, for two pixels.
MOST_CHANNELS = 1 << 15
"""The most output channels for which 16-bit offsets of outputs suffice."""
MANY_CHANNELS = f"is for at most {MOST_CHANNELS} output channels"
"""The reason why a kernel does not serve a layer with more."""
_SCALES = range(8, 15)
"""The powers of two that sums may be multiplied with; small ones leave more bits for multipliers that are small."""
_ALL_SCALES = (*_SCALES, *range(7, -1, -1), 15)


def blocked_weights(weights: Array) -> Array:
    """Return int8 ``weights`` [channels, rows, bytes of a row] in the order that ``dot_2x4_mve.h`` reads, flat.

    The last group of four channels is filled with copies of the last channel. If rows are not a whole number of
    vectors, zeros follow the last one, because the kernels read a whole vector there.
    """
    channels, rows, length = weights.shape
    padded = np.pad(weights, ((0, -channels % GROUP), (0, 0), (0, 0)), mode="edge")
    groups = padded.reshape(-1, GROUP, rows, length).swapaxes(1, 2)
    whole, tail = np.split(groups, [length - length % VECTOR], axis=3)
    vectors = whole.reshape(*whole.shape[:3], -1, VECTOR).swapaxes(2, 3)
    parts = [part.reshape(len(groups), rows, -1) for part in (vectors, tail)]
    flat = np.concatenate(parts, axis=2).reshape(-1)
    beyond = VECTOR - length % VECTOR if length % VECTOR else 0
    return np.concatenate([flat, np.zeros(beyond, np.int8)])


def channels_in_fours(bias: Array, rescales: Sequence[Rescale]) -> Constant:
    """Return the array of ``struct mlf_channels4``; the last one is filled with copies of the last channel."""
    missing = -len(rescales) % GROUP
    filled = [*rescales, *[rescales[-1]] * missing]
    columns = [
        np.pad(bias, (0, missing), mode="edge").tolist(),
        [rescale.multiplier for rescale in filled],
        [rescale.shift for rescale in filled],
    ]
    groups = [[column[at : at + GROUP] for column in columns] for at in range(0, len(columns[0]), GROUP)]
    records = [f"{{{', '.join(map(braces, group))}}}" for group in groups]
    words = record_words(f"{GROUP}i4,{GROUP}i4,{GROUP}i1", [tuple(group) for group in groups])
    return Constant.records("channels", "mlf_channels4", records, 1, lambda: words)


def rounding(layer: Weighted[WeightedOperator]) -> str:
    """Return the rounding of ``dot_2x4_mve.h`` that the channels need: ``all``, ``relu``, ``right`` or ``any``.

    The fewer cases remain, the fewer instructions a vector takes: ``all`` if every channel shifts right, no result is
    below the zero point and the clamp is the range of int8; ``relu`` likewise with another clamp; ``right`` if every
    channel shifts right but results have both signs; ``any`` otherwise.
    """
    if any(rescale.shift > 0 for rescale in layer.rescales):
        return "any"
    # Code that also serves other values has the general form.
    if layer.replaceable:
        return "any"
    whole = layer.clamp == (-128, 127)
    # Negative results are clamped in any case, so that their rounding does not matter.
    if layer.clamp[0] >= zero_point(layer.output):
        return "all" if whole else "relu"
    return "right" if whole else "any"


def shape_word(length: int, rows: int) -> str:
    """Return the name of the function of ``dot_2x4_mve.h`` for windows of ``rows`` pieces of ``length`` bytes."""
    if length < VECTOR:
        assert rows == 1, "no kernel has more than one row of less than a vector"
        return "tail"
    word = "mixed" if length % VECTOR else "vectors"
    if rows == 1:
        return word
    return "mixed_rows" if length % VECTOR else "rows"


def matrix_parameters(layer: Weighted[Conv2D | FullyConnected], rows: int) -> tuple[Parameter, ...]:
    """Return the parameters of an int8 product whose filter has ``rows`` separate pieces for each channel."""
    weights = layer.weights.known
    block = partial(blocked_weights, weights.reshape(weights.shape[0], rows, -1))
    filter_ = array("filter", "int8_t", block(), block, order="dot_2x4_mve.h")
    return int8_parameters(layer, filter_, channels_in_fours(layer.folded_bias(), layer.rescales))


def as_one_row(layer: Weighted[Conv2D | FullyConnected]) -> tuple[Tensor, Tensor]:
    """Return both images as one long row if each output pixel depends on one input pixel only, else unchanged.

    Both are NHWC. For example, 10 rows of 10 pixels become one row of 100, without the work at each end of a row.
    """
    source, output = layer.images
    if not layer.is_pointwise:
        return source, output
    row = (1, 1, layer.rows)
    return replace(source, shape=(*row, source.shape[3])), replace(output, shape=(*row, output.shape[3]))


def rounded_once(layer: Weighted[Conv2D], weights: Array) -> tuple[DspChannels, int] | None:
    """Return the constants of the brief requantisation of ``dot_4x2_mve.h`` and the power of two in its factor.

    ``None`` if it would not be exact, as for outputs on both sides of the zero point, or if there is another clamp than
    to the range of int8. ``weights`` are int8 [channels, inputs].
    """
    channels = _unclamped(layer, weights)
    if channels is None:
        return None
    # A generator, so that a scale is searched only if those before it failed.
    forms = (brief_channels(channels, zero_point(layer.output), BriefForm(scale, 15, 1 << 38)) for scale in _SCALES)
    return next(((each, scale) for each, scale in zip(forms, _SCALES, strict=True) if each.brief), None)


def rounded_once_by_channel(layer: Weighted[DepthwiseConv2D], weights: Array) -> DspChannels | None:
    """Return the same with a factor for each channel, whose power of two is in its multiplier's lowest four bits."""
    channels = _unclamped(layer, weights)
    if channels is None:
        return None
    biases, multipliers = np.zeros_like(channels.bias), np.zeros_like(channels.multiplier)
    for scale in _ALL_SCALES:
        at = np.flatnonzero(multipliers == 0)
        if at.size:
            form = BriefForm(scale, 15, 1 << 38, tagged=True)
            found = brief_where_exact(channels.of(at), zero_point(layer.output), form)
            biases[at], multipliers[at] = found.bias, found.multiplier
    exact = bool(multipliers.all())
    return replace(channels, bias=biases, multiplier=multipliers, brief=True) if exact else None


def _unclamped(layer: Weighted[Conv2D | DepthwiseConv2D], weights: Array) -> DspChannels | None:
    if layer.clamp != (-128, 127):
        return None
    return dsp_channels(weights, layer.folded_bias(), layer.rescales, zero_point(layer.output))


def brief_table(channels: DspChannels, order: Iterable[int]) -> Constant:
    """Return the array of ``struct mlf_brief`` of the channels in ``order``."""
    pairs = [(int(channels.bias[at]), int(channels.multiplier[at])) for at in order]
    records = [braces(pair) for pair in pairs]
    return Constant.records("channels", "mlf_brief", records, 4, lambda: record_words("i4,i4", pairs))
