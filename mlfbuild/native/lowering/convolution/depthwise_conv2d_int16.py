"""DEPTHWISE_CONV_2D of int16 activations: ``kernels/dsp/depthwise_conv2d_int16_dsp.h`` and ``..._mve.h``."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.bases import convolution_tensors
from mlfbuild.native.graph.ops import DepthwiseConv2D
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter
from mlfbuild.native.lowering.common.int16 import int16_range_line
from mlfbuild.native.lowering.common.window import window_lines
from mlfbuild.native.lowering.convolution.conv2d_int16_dsp import Int64Array, NarrowChannels, narrow_channels

_MOST_TAPS = 64
"""The most taps of a filter, whose addresses the kernel keeps on the stack."""
_UNFIT = f"is for whole groups of channels and at most {_MOST_TAPS} taps, with 32-bit sums"


def lower_depthwise_conv2d_int16_dsp(graph: Graph, node: Node, operator: DepthwiseConv2D) -> KernelCall | str:
    """Return the call of ``mlf_depthwise_conv2d_int16_dsp``, or the reason why the portable kernel must do it."""
    channels = _channels(graph, node, operator, 4)
    return _UNFIT if channels is None else _call(graph, node, operator, "dsp", "range", _pack_dsp(channels))


def lower_depthwise_conv2d_int16_mve(graph: Graph, node: Node, operator: DepthwiseConv2D) -> KernelCall | str:
    """Return the call of ``mlf_depthwise_conv2d_int16_mve``, or the reason why another kernel must do it."""
    channels = _channels(graph, node, operator, 8)
    return _UNFIT if channels is None else _call(graph, node, operator, "mve", "&range", _pack_mve(channels))


def _channels(graph: Graph, node: Node, operator: DepthwiseConv2D, group: int) -> NarrowChannels | None:
    """Return the constants of a kernel that computes ``group`` channels together."""
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    channels, taps = source.shape[3], weights.shape[1] * weights.shape[2]
    if operator.depth_multiplier != 1 or channels % group or taps > _MOST_TAPS:
        return None
    matrix = weights.known.reshape(taps, channels).T
    # Taps first, channels last, as in the file; the kernels need one row for each channel.
    rescales = operator.rescales(source, weights, output)
    return narrow_channels(matrix, None if bias is None else bias.data, rescales, fine=operator.fine)


def _call(
    graph: Graph, node: Node, operator: DepthwiseConv2D, feature: str, range_: str, filter_: Int64Array
) -> KernelCall:
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    header = f"depthwise_conv2d_int16_{feature}.h"
    padded = operator.padding != ((0, 0), (0, 0))
    # The padding of int16 is 0, because its zero point is.
    padding = Constant.array("padding", "int16_t", np.zeros(source.shape[3], np.int16))
    # Without padding the pointer is not read; any valid one will do.
    arguments = f"&window, {range_}, input, filter, {'padding' if padded else 'input'}, output"
    return KernelCall("depthwise_conv2d", header, (
        Parameter("const int16_t *", "input", source.name),
        Parameter("const int32_t *", "filter", Constant.packed(filter_.astype(np.int32), header)),
        *([Parameter("const int16_t *", "padding", padding)] if padded else []),
        Parameter("int16_t *", "output", output.name),
    ), (
        *window_lines(node, operator.window(weights), source, output),
        int16_range_line(operator.activation, output),
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
