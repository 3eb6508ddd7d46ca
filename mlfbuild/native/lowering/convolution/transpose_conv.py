"""TRANSPOSE_CONV."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph import DType, Graph, Node
from mlfbuild.native.graph.bases import convolution_tensors
from mlfbuild.native.graph.ops import TransposeConv
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, channel_table, float_bias
from mlfbuild.native.lowering.common.activation import float_range_line, quantization_constant
from mlfbuild.native.lowering.common.convolution import has_offset, wide_weights
from mlfbuild.native.lowering.common.int16 import int16_parameters, int16_range_line
from mlfbuild.native.lowering.common.window import window_lines
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_transpose_conv_<type>``; its window is that of the convolution from output to input."""
    operator = node.operator
    assert isinstance(operator, TransposeConv)
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    window = window_lines(node, operator.window(weights), output, source)
    bias_data = None if bias is None else bias.data
    if source.dtype is DType.FLOAT32:
        filters = weights.name if weights.data is None else Constant.array("weights", "float", weights.data)
        return KernelCall("transpose_conv", "transpose_conv.h", (
            Parameter("const float *", "input", source.name),
            Parameter("const float *", "weights", filters),
            Parameter("const float *", "bias", float_bias(bias_data, weights.shape[0])),
            Parameter("float *", "output", output.name),
        ), (
            *window,
            float_range_line(operator.activation),
            "mlf_transpose_conv_float(&window, range, input, weights, bias, output);",
        ))  # fmt: skip
    if source.dtype is DType.INT16:
        constant = Constant.array("weights", "int8_t", weights.known)
        rescales = operator.rescales(source, weights, output)
        parameters = int16_parameters(source, constant, bias, rescales, output, "wide")
        return KernelCall("transpose_conv", "transpose_conv_int16.h", parameters, (
            *window,
            int16_range_line(operator.activation, output),
            "mlf_transpose_conv_int16(&window, range, input, weights, channels, output);",
        ))  # fmt: skip
    biases = np.zeros(weights.shape[0], np.int32) if bias_data is None else bias_data.reshape(-1)
    channels = channel_table(biases, operator.rescales(source, weights, output))
    if has_offset(graph, node):
        way, c_type, values = "_wide", "int16_t", wide_weights(weights)
    else:
        way, c_type, values = "", "int8_t", weights.known
    return KernelCall("transpose_conv", f"transpose_conv{way}.h", (
        Parameter("const struct mlf_quantization *", "quantization",
                  quantization_constant(source, output, operator.activation)),
        Parameter("const int8_t *", "input", source.name),
        Parameter(f"const {c_type} *", "weights", Constant.array("weights", c_type, values)),
        Parameter("const struct mlf_channel *", "channels", channels),
        Parameter("int8_t *", "output", output.name),
    ), (
        *window,
        f"mlf_transpose_conv{way}_int8(&window, quantization, input, weights, channels, output);",
    ))  # fmt: skip
