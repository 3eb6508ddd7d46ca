"""What CONV_2D and DEPTHWISE_CONV_2D share: all but the name of the kernel."""

from __future__ import annotations

from mlfbuild.compilers.native.ops.activation import float_range_line, quantization_constant, zero_point
from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter, channel_table, float_bias, folded_bias
from mlfbuild.compilers.native.ops.window import window_lines
from mlfbuild.graph import DType, Graph, Node
from mlfbuild.graph.ops import Conv2D, DepthwiseConv2D
from mlfbuild.graph.ops.convolution import convolution_tensors
from mlfbuild.graph.quantize import convolution_rescales


def lower_convolution(
    graph: Graph, node: Node, operator: Conv2D | DepthwiseConv2D, word: str, overwrites: tuple[int, ...] = ()
) -> Call:
    """Return the call of ``mlf_<word>_int8`` or ``mlf_<word>_float``, found in ``<word>.h``."""
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    window = window_lines(node, operator.window(weights), source, output)
    if source.dtype is DType.FLOAT32:
        return Call(word, f"{word}.h", _float_parameters(graph, node), (
            *window,
            float_range_line(operator.activation),
            f"mlf_{word}_float(&window, range, input, filter, bias, output);",
        ), overwrites)  # fmt: skip
    return Call(word, f"{word}.h", _int8_parameters(graph, node, operator), (
        *window,
        f"mlf_{word}_int8(&window, quantization, input, filter, channels, output);",
    ), overwrites)  # fmt: skip


def _int8_parameters(graph: Graph, node: Node, operator: Conv2D | DepthwiseConv2D) -> tuple[Parameter, ...]:
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    assert weights.data is not None
    folded = folded_bias(None if bias is None else bias.data, weights.data, operator.channel_axis, zero_point(source))
    channels = channel_table(folded, convolution_rescales(source, weights, output, output.shape[3]))
    return (
        Parameter("const struct mlf_quantization *", "quantization",
                  quantization_constant(source, output, operator.activation)),
        Parameter("const int8_t *", "input", source.name),
        Parameter("const int8_t *", "filter", Constant.array("filter", "int8_t", weights.data)),
        Parameter("const struct mlf_channel *", "channels", channels),
        Parameter("int8_t *", "output", output.name),
    )  # fmt: skip


def _float_parameters(graph: Graph, node: Node) -> tuple[Parameter, ...]:
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    assert weights.data is not None
    return (
        Parameter("const float *", "input", source.name),
        Parameter("const float *", "filter", Constant.array("filter", "float", weights.data)),
        Parameter("const float *", "bias", float_bias(None if bias is None else bias.data, output.shape[3])),
        Parameter("float *", "output", output.name),
    )
