"""DEPTHWISE_CONV_2D of int16 activations: ``kernels/dsp/depthwise_conv2d_int16_dsp.h`` and ``..._mve.h``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlfbuild.native.graph.ops import DepthwiseConv2D
from mlfbuild.native.lowering.call import Constant, KernelCall
from mlfbuild.native.lowering.common.int16 import int16_range_line
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.parameters import array, packed_filter, reads, scratch, writes
from mlfbuild.native.lowering.common.window import window_lines
from mlfbuild.native.lowering.convolution.conv2d_int16_dsp import Int64Array, NarrowChannels, narrow_channels

_MOST_TAPS = 64
"""The most taps of a filter, whose addresses the kernel keeps on the stack."""
_READ_AGAIN = 16
"""From this number of pixels on, each of which reads the whole filter, copying it takes little time."""
_UNFIT = f"is for whole groups of channels and at most {_MOST_TAPS} taps, with 32-bit sums"


def lower_depthwise_conv2d_int16_dsp(layer: Weighted[DepthwiseConv2D]) -> KernelCall | str:
    """Return the call of ``mlf_depthwise_conv2d_int16_dsp``, or the reason why the portable kernel must do it."""
    channels = _channels(layer, 4)
    if channels is None:
        return _UNFIT
    filter_ = _pack_dsp(channels)
    if layer.rows < _READ_AGAIN:
        return _call(layer, "dsp", "range", filter_, ", 0, NULL")

    def made(copied: int) -> KernelCall:
        return _call(layer, "dsp", "range", filter_, f", {copied}, scratch")

    def with_room(free: int) -> tuple[int, tuple[str, ...]]:
        copied = 4 * filter_.size if 4 * filter_.size <= free else 0
        return copied, made(copied).body

    call = made(0)
    return replace(call, parameters=(*call.parameters, scratch("int32_t", 0)), grown=with_room)


def lower_depthwise_conv2d_int16_mve(layer: Weighted[DepthwiseConv2D]) -> KernelCall | str:
    """Return the call of ``mlf_depthwise_conv2d_int16_mve``, or the reason why another kernel must do it."""
    channels = _channels(layer, 8)
    return _UNFIT if channels is None else _call(layer, "mve", "&range", _pack_mve(channels))


def _channels(layer: Weighted[DepthwiseConv2D], group: int) -> NarrowChannels | None:
    """Return the constants of a kernel that computes ``group`` channels together."""
    channels, taps = layer.source.shape[3], layer.weights.shape[1] * layer.weights.shape[2]
    if layer.operator.depth_multiplier != 1 or channels % group or taps > _MOST_TAPS:
        return None
    # Taps first, channels last, as in the file; the kernels need one row for each channel.
    return narrow_channels(layer.weights.known.reshape(taps, channels).T, layer)


def _call(
    layer: Weighted[DepthwiseConv2D], feature: str, range_: str, filter_: Int64Array, more: str = ""
) -> KernelCall:
    header, padded = f"depthwise_conv2d_int16_{feature}.h", layer.is_padded
    # The padding of int16 is 0, because its zero point is.
    padding = [array("padding", "int16_t", np.zeros(layer.source.shape[3], np.int16))] if padded else []
    # Without padding the pointer is not read; any valid one will do.
    arguments = f"&window, {range_}, input, filter, {'padding' if padded else 'input'}, output{more}"
    return KernelCall("depthwise_conv2d", header, (
        reads("input", layer.source),
        packed_filter(Constant.packed(filter_.astype(np.int32), header)),
        *padding,
        writes("output", layer.output),
    ), (
        *window_lines(layer.node, layer.window, *layer.images),
        int16_range_line(layer.operator.activation, layer.output),
        f"mlf_depthwise_conv2d_int16_{feature}({arguments});",
    # Without padding, each pixel is read before or when its place is written.
    ), () if padded else (0,))  # fmt: skip


def _pack_dsp(channels: NarrowChannels) -> Int64Array:
    """Return the words of the filter: groups of four channels, pairs of weights as int16."""
    groups = channels.weights.reshape(-1, 4, channels.weights.shape[1]).transpose(0, 2, 1)
    # Two int16 weights in a word, for the dual multiply of the DSP extension.
    words = (groups[:, :, ::2] & 0xFFFF) | groups[:, :, 1::2] << 16
    bias, multiplier = channels.bias.reshape(-1, 4), channels.multiplier.reshape(-1, 4)
    return np.concatenate([bias, words.reshape(len(bias), -1), multiplier], axis=1).reshape(-1)


def _pack_mve(channels: NarrowChannels) -> Int64Array:
    """Return the words of the filter: groups of eight channels, four weights in a word."""
    groups = channels.weights.reshape(-1, 8, channels.weights.shape[1]).transpose(0, 2, 1)
    words = np.ascontiguousarray(groups.astype(np.int8)).view("<i4").astype(np.int64)
    # Even and odd channels apart, as VMULLB and VMULLT produce their sums.
    bias, multiplier = (
        values.reshape(-1, 4, 2).transpose(0, 2, 1).reshape(-1, 8) for values in (channels.bias, channels.multiplier)
    )
    return np.concatenate([bias, words.reshape(len(bias), -1), multiplier], axis=1).reshape(-1)
