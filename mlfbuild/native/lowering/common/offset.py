"""Layers whose int8 weights have a zero point, as those of uint8 networks: portable kernels of their own."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph import Array, DType, Graph, Node, Tensor
from mlfbuild.native.graph.bases import Window, convolution_tensors
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.native.lowering.call import (
    Constant,
    KernelCall,
    Parameter,
    channel_table,
    folded_bias,
)
from mlfbuild.native.lowering.common.activation import quantization_constant, zero_point
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
