"""Lower CONV_2D and DEPTHWISE_CONV_2D to portable kernels, which differ only in their name.

Layers whose int8 weights have a zero point, as those of uint8 networks, have portable kernels of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph import Array, DType, Graph, Node, Tensor
from mlfbuild.native.graph.bases import Window, convolution_tensors
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, channel_table, float_bias, folded_bias
from mlfbuild.native.lowering.common.activation import float_range_line, quantization_constant, zero_point
from mlfbuild.native.lowering.common.int16 import int16_parameters, int16_range_line, int16_way
from mlfbuild.native.lowering.common.window import window_lines


def has_offset(graph: Graph, node: Node) -> bool:
    """Return whether the weights of a layer have a zero point."""
    weights = graph.inputs_of(node)[1]
    return weights.dtype is DType.INT8 and weights.quantization is not None and any(weights.quantization.zero_points)


def lower_conv2d_offset(graph: Graph, node: Node, operator: Conv2D) -> KernelCall:
    """Return the call of ``mlf_conv2d_offset_int8``."""
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    return _conv2d(graph, node, operator, "conv2d", (operator.window(weights), source, output))


def lower_fully_connected_offset(graph: Graph, node: Node, operator: FullyConnected) -> KernelCall:
    """Return the call of ``mlf_conv2d_offset_int8``, for which each row is an image of one pixel."""
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    channels, depth = weights.shape
    rows = source.elements // depth
    images = (
        Tensor(source.name, (rows, 1, 1, depth), DType.INT8),
        Tensor(output.name, (rows, 1, 1, channels), DType.INT8),
    )
    return _conv2d(
        graph, node, operator, "fully_connected", (Window((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0))), *images)
    )


def _conv2d(
    graph: Graph, node: Node, operator: Conv2D | FullyConnected, word: str, window: tuple[Window, Tensor, Tensor]
) -> KernelCall:
    _, weights, _, _ = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    filter_ = Parameter("const int8_t *", "filter", Constant.array("filter", "int8_t", weights.known))
    return KernelCall(word, "conv2d_offset.h", _parameters(graph, node, operator, filter_, 0), (
        *window_lines(node, *window),
        f"mlf_conv2d_offset_int8(&window, quantization, {zero_point(weights)}, input, filter, channels, output);",
    ))  # fmt: skip


def lower_depthwise_conv2d_offset(
    graph: Graph, node: Node, operator: DepthwiseConv2D, overwrites: tuple[int, ...]
) -> KernelCall:
    """Return the call of ``mlf_depthwise_conv2d_wide_int8``."""
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    filter_ = Parameter("const int16_t *", "filter", Constant.array("filter", "int16_t", wide_weights(weights)))
    parameters = _parameters(graph, node, operator, filter_, operator.channel_axis)
    return KernelCall("depthwise_conv2d", "depthwise_conv2d_wide.h", parameters, (
        *window_lines(node, operator.window(weights), source, output),
        "mlf_depthwise_conv2d_wide_int8(&window, quantization, input, filter, channels, output);",
    ), overwrites)  # fmt: skip


def wide_weights(weights: Tensor) -> Array:
    """Return the weights without their zero point, which have 9 bits, as int16."""
    return np.asarray(weights.known.astype(np.int16) - zero_point(weights), np.int16)


def _parameters(
    graph: Graph, node: Node, operator: Conv2D | DepthwiseConv2D | FullyConnected, filter_: Parameter, axis: int
) -> tuple[Parameter, ...]:
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    # Without the zero point of the weights, so that only the sum of the inputs is left for the kernel.
    folded = folded_bias(None if bias is None else bias.data, wide_weights(weights), axis, zero_point(source))
    return (
        Parameter("const struct mlf_quantization *", "quantization",
                  quantization_constant(source, output, operator.activation)),
        Parameter("const int8_t *", "input", source.name),
        filter_,
        Parameter("const struct mlf_channel *", "channels",
                  channel_table(folded, operator.rescales(source, weights, output))),
        Parameter("int8_t *", "output", output.name),
    )  # fmt: skip


def lower_convolution(
    graph: Graph, node: Node, operator: Conv2D | DepthwiseConv2D, word: str, overwrites: tuple[int, ...] = ()
) -> KernelCall:
    """Return the call of ``mlf_<word>_<type>`` in ``<word>.h`` or ``<word>_int16.h``."""
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    window = window_lines(node, operator.window(weights), source, output)
    if source.dtype is DType.FLOAT32:
        return KernelCall(word, f"{word}.h", _float_parameters(graph, node), (
            *window,
            float_range_line(operator.activation),
            f"mlf_{word}_float(&window, range, input, filter, bias, output);",
        ), overwrites)  # fmt: skip
    if source.dtype is DType.INT16:
        return _lower_int16(graph, node, operator, word, window, overwrites)
    return KernelCall(word, f"{word}.h", _int8_parameters(graph, node, operator), (
        *window,
        f"mlf_{word}_int8(&window, quantization, input, filter, channels, output);",
    ), overwrites)  # fmt: skip


def _lower_int16(
    graph: Graph,
    node: Node,
    operator: Conv2D | DepthwiseConv2D,
    word: str,
    window: Sequence[str],
    overwrites: tuple[int, ...],
) -> KernelCall:
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    wide, rescales = operator.sums_are_wide(source, bias), operator.rescales(source, weights, output)
    way = int16_way(wide=wide, fine=operator.fine)
    filter_ = Constant.array("filter", "int8_t", weights.known)
    return KernelCall(word, f"{word}_int16.h", int16_parameters(source, filter_, bias, rescales, output, way), (
        *window,
        int16_range_line(operator.activation, output),
        f"mlf_{word}_int16_{way}(&window, range, input, filter, channels, output);",
    ), overwrites)  # fmt: skip


def _int8_parameters(graph: Graph, node: Node, operator: Conv2D | DepthwiseConv2D) -> tuple[Parameter, ...]:
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    folded = folded_bias(None if bias is None else bias.data, weights.known, operator.channel_axis, zero_point(source))
    channels = channel_table(folded, operator.rescales(source, weights, output))
    return (
        Parameter("const struct mlf_quantization *", "quantization",
                  quantization_constant(source, output, operator.activation)),
        Parameter("const int8_t *", "input", source.name),
        Parameter("const int8_t *", "filter", Constant.array("filter", "int8_t", weights.known)),
        Parameter("const struct mlf_channel *", "channels", channels),
        Parameter("int8_t *", "output", output.name),
    )  # fmt: skip


def _float_parameters(graph: Graph, node: Node) -> tuple[Parameter, ...]:
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    filter_ = weights.name if weights.data is None else Constant.array("filter", "float", weights.data)
    return (
        Parameter("const float *", "input", source.name),
        Parameter("const float *", "filter", filter_),
        Parameter("const float *", "bias", float_bias(None if bias is None else bias.data, output.shape[3])),
        Parameter("float *", "output", output.name),
    )
