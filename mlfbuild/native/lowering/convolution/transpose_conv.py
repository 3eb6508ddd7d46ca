"""TRANSPOSE_CONV."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph import DType, Graph, Node
from mlfbuild.native.graph.ops import TransposeConv
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, channel_table
from mlfbuild.native.lowering.common.activation import float_range_line
from mlfbuild.native.lowering.common.convolution import wide_weights
from mlfbuild.native.lowering.common.int16 import int16_parameters, int16_range_line
from mlfbuild.native.lowering.common.layer import Weighted, int8_parameters
from mlfbuild.native.lowering.common.parameters import array, float_bias, reads, writes
from mlfbuild.native.lowering.common.window import window_lines
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_transpose_conv_<type>``; its window is that of the convolution from output to input."""
    assert isinstance(node.operator, TransposeConv)
    layer = Weighted(graph, node, node.operator, settings.replaceable)
    weights, activation = layer.weights, node.operator.activation
    # The window moves over the output.
    window = window_lines(node, layer.window, layer.output, layer.source)
    if layer.source.dtype is DType.FLOAT32:
        filters = weights.name if weights.data is None else Constant.array("weights", "float", weights.data)
        return KernelCall("transpose_conv", "transpose_conv.h", (
            reads("input", layer.source),
            Parameter("const float *", "weights", filters),
            float_bias(layer.bias, weights.shape[0]),
            writes("output", layer.output),
        ), (
            *window,
            float_range_line(activation),
            "mlf_transpose_conv_float(&window, range, input, weights, bias, output);",
        ))  # fmt: skip
    if layer.source.dtype is DType.INT16:
        parameters = int16_parameters(layer, array("weights", "int8_t", weights.known), "wide")
        return KernelCall("transpose_conv", "transpose_conv_int16.h", parameters, (
            *window,
            int16_range_line(activation, layer.output),
            "mlf_transpose_conv_int16(&window, range, input, weights, channels, output);",
        ))  # fmt: skip
    biases = np.zeros(weights.shape[0], np.int32) if layer.bias is None else layer.bias.reshape(-1)
    way = "_wide" if layer.has_offset else ""
    filter_ = array("weights", "int16_t", wide_weights(weights)) if way else array("weights", "int8_t", weights.known)
    parameters = int8_parameters(layer, filter_, channel_table(biases, layer.rescales))
    return KernelCall("transpose_conv", f"transpose_conv{way}.h", parameters, (
        *window,
        f"mlf_transpose_conv{way}_int8(&window, quantization, input, weights, channels, output);",
    ))  # fmt: skip
