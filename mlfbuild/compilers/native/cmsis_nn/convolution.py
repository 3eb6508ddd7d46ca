"""CONV_2D and DEPTHWISE_CONV_2D of int8 by ``arm_convolve_wrapper_s8`` and ``arm_depthwise_conv_wrapper_s8``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlfbuild.compilers.native.cmsis_nn.buffers import convolve_s8, depthwise_s8
from mlfbuild.compilers.native.cmsis_nn.layer import FEATURES, MVE, PLAIN, Layer, features_of
from mlfbuild.compilers.native.cmsis_nn.rights import clamp_fits, fitting_rescales, reads_depthwise, reads_row
from mlfbuild.compilers.native.cmsis_nn.text import (
    LANES,
    RESCALES,
    call,
    channel_parameters,
    context,
    convolution_fields,
    dims,
    image_dims,
    params,
    scratch,
)
from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node, Tensor
from mlfbuild.graph.ops import Conv2D, DepthwiseConv2D
from mlfbuild.graph.ops.convolution import Convolution, convolution_tensors
from mlfbuild.graph.quantize import activation_range, zero_point_of

Size = Callable[[Layer, str], int]


def lower(graph: Graph, node: Node, settings: Settings) -> Call | None:
    """Return the call of ``arm_convolve_wrapper_s8``; ``None`` where our own kernel has to compute ``node``."""
    operator = node.operator
    assert isinstance(operator, Conv2D)
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    if weights.shape[3] != source.shape[3]:
        return None
    layer = Layer.of(operator.window(weights), source, output)
    return _lower(graph, node, settings, layer, "conv2d", "convolve", convolve_s8)


def lower_depthwise(graph: Graph, node: Node, settings: Settings) -> Call | None:
    """Return the call of ``arm_depthwise_conv_wrapper_s8``; ``None`` as ``lower``."""
    operator = node.operator
    assert isinstance(operator, DepthwiseConv2D)
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    layer = Layer.of(operator.window(weights), source, output)
    return _lower(graph, node, settings, layer, "depthwise_conv2d", "depthwise_conv", depthwise_s8)


def _lower(
    graph: Graph, node: Node, settings: Settings, layer: Layer, word: str, function: str, size_of: Size
) -> Call | None:
    operator, features = node.operator, features_of(settings)
    assert isinstance(operator, Convolution)
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    if output.dtype is not DType.INT8 or weights.data is None or not layer.small:
        return None
    channels = operator.channel_axis
    matrix = np.moveaxis(weights.data, channels, 0).reshape(weights.shape[channels], -1)
    offsets = np.zeros(len(matrix), np.int32) if bias is None or bias.data is None else bias.data.reshape(-1)
    rescales = fitting_rescales(matrix, offsets, operator.rescales(source, weights, output))
    clamp = activation_range(operator.activation, output)
    depthwise = isinstance(operator, DepthwiseConv2D)
    reads = reads_depthwise if depthwise else reads_row
    right = frozenset(each for each in FEATURES if reads(layer, each))
    if rescales is None or not {features, PLAIN} <= right or not clamp_fits(clamp, output):
        return None
    size = max(size_of(layer, each) for each in (features, PLAIN))
    fields = convolution_fields(layer, (-zero_point_of(source), zero_point_of(output)), clamp)
    if depthwise:
        fields["ch_mult"] = str(layer.output_channels // layer.channels)
    kind = "cmsis_nn_dw_conv_params" if depthwise else "cmsis_nn_conv_params"
    outputs, inputs = (1, layer.output_channels) if depthwise else (layer.output_channels, layer.channels)
    return Call(word, "compiler.h", (
        params("layer", kind, fields),
        Parameter("const int8_t *", "input", source.name),
        Parameter("const int8_t *", "filter", _filter(weights, features, depthwise=depthwise)),
        *channel_parameters(offsets, rescales, features),
        Parameter("int8_t *", "output", output.name),
        *scratch(size),
    ), (
        context(size),
        *RESCALES,
        image_dims("input_size", layer.batches, layer.image, layer.channels),
        image_dims("filter_size", outputs, layer.filter, inputs),
        dims("bias_size", (1, 1, 1, layer.output_channels)),
        image_dims("output_size", layer.batches, layer.output, layer.output_channels),
        *call(f"arm_{function}_wrapper_s8", "&context", "layer", "&rescales", "&input_size", "input", "&filter_size",
              "filter", "&bias_size", "bias", "&output_size", "output"),
    ), cmsis_nn=frozenset(each for each in right if size_of(layer, each) <= size))  # fmt: skip


def _filter(weights: Tensor, features: str, *, depthwise: bool) -> Constant:
    """Return the weights; code for MVE reads beyond the last channels of a depthwise convolution."""
    assert weights.data is not None
    flat = weights.data.reshape(-1)
    more = -weights.shape[3] % LANES if depthwise and features == MVE else 0
    return Constant.array("filter", "int8_t", np.pad(flat, (0, more)))
