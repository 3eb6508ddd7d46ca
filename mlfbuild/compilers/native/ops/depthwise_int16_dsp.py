"""DEPTHWISE_CONV_2D of int16 activations for cores with the DSP extension: ``kernels/depthwise_conv2d_int16_dsp.h``."""

from __future__ import annotations

import numpy as np

from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter
from mlfbuild.compilers.native.ops.int16 import int16_range_line
from mlfbuild.compilers.native.ops.int16_dsp import Int64Array, NarrowChannels, narrow_channels
from mlfbuild.compilers.native.ops.window import window_lines
from mlfbuild.graph import Graph, Node
from mlfbuild.graph.ops import DepthwiseConv2D
from mlfbuild.graph.ops.convolution import convolution_tensors

_GROUP = 4
"""Channels that are computed together."""
_MOST_TAPS = 64
"""Of which addresses are kept on the stack."""


def lower_depthwise_conv2d_int16_dsp(graph: Graph, node: Node, operator: DepthwiseConv2D) -> Call | None:
    """Return the call of ``mlf_depthwise_conv2d_int16_dsp``, or ``None`` where the portable kernel must do it."""
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    assert weights.data is not None
    channels, taps = source.shape[3], weights.shape[1] * weights.shape[2]
    if operator.depth_multiplier != 1 or channels % _GROUP or taps > _MOST_TAPS:
        return None
    matrix = weights.data.reshape(taps, channels).T
    rescales = operator.rescales(source, weights, output)
    narrow = narrow_channels(matrix, None if bias is None else bias.data, rescales)
    if narrow is None:
        return None
    padded = operator.padding != ((0, 0), (0, 0))
    padding = Constant.array("padding", "int16_t", np.zeros(channels, np.int16))
    filter_ = Constant.array("filter", "int32_t", _pack(narrow).astype(np.int32))
    return Call("depthwise_conv2d", "depthwise_conv2d_int16_dsp.h", (
        Parameter("const int16_t *", "input", source.name),
        Parameter("const int32_t *", "filter", filter_),
        *([Parameter("const int16_t *", "padding", padding)] if padded else []),
        Parameter("int16_t *", "output", output.name),
    ), (
        *window_lines(node, operator.window(weights), source, output),
        int16_range_line(operator.activation, output),
        f"mlf_depthwise_conv2d_int16_dsp(&window, range, input, filter, {'padding' if padded else 'input'}, output);",
    ), () if padded else (0,))  # fmt: skip


def _pack(channels: NarrowChannels) -> Int64Array:
    """Return the words of the filter."""
    groups = channels.weights.reshape(-1, _GROUP, channels.weights.shape[1]).transpose(0, 2, 1)
    words = (groups[:, :, ::2] & 0xFFFF) | groups[:, :, 1::2] << 16
    bias, multiplier = channels.bias.reshape(-1, _GROUP), channels.multiplier.reshape(-1, _GROUP)
    packed: Int64Array = np.concatenate([bias, words.reshape(len(bias), -1), multiplier], axis=1).reshape(-1)
    return packed
