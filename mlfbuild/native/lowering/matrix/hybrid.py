"""QUANTIZE_ROWS, layers of int8 weights over float32, and CONV_INTEGER."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.bases import Convolution
from mlfbuild.native.graph.ops import (
    BlockwiseFullyConnected,
    ConvInteger,
    DepthwiseConv2D,
    Hybrid,
    HybridTensors,
    QuantizeRows,
    block_sums,
    hybrid_tensors,
)
from mlfbuild.native.lowering.call import KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.common.activation import float_range_line
from mlfbuild.native.lowering.common.parameters import array, float_bias, reads, scratch, writes
from mlfbuild.native.lowering.common.window import window_lines
from mlfbuild.native.lowering.trained import trained
from mlfbuild.native.settings import CodegenSettings

_HEADER = "hybrid.h"


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_quantize_rows`` or of ``mlf_<layer>_hybrid``."""
    if isinstance(node.operator, QuantizeRows):
        return _lower_rows(graph, node, node.operator)
    if isinstance(node.operator, BlockwiseFullyConnected):
        return _lower_blockwise(graph, node)
    operator = node.operator
    if isinstance(operator, ConvInteger):
        return _lower_integer(graph, node, operator)
    assert isinstance(operator, Hybrid)
    tensors = hybrid_tensors(graph.inputs_of(node), graph.outputs_of(node))
    word, sizes, size = _layer(node, operator, tensors)
    # A window of one pixel is contiguous in the image, and needs no copy.
    passed = "scratch, " if size else "NULL, " if word == "conv2d" else ""
    shape = "window" if isinstance(operator.layer, Convolution) else "matrix"
    return KernelCall(f"{word}_hybrid", _HEADER, (
        *_numbers(operator, tensors),
        reads("input", tensors.values),
        array("weights", "int8_t", tensors.weights.known),
        *([scratch("int8_t", size)] if size else []),
        writes("output", tensors.output),
    ), (
        *sizes,
        float_range_line(operator.activation),
        *_struct(operator, tensors),
        f"mlf_{word}_hybrid(&{shape}, &hybrid, input, weights, {passed}output);",
    ))  # fmt: skip


def _lower_rows(graph: Graph, node: Node, operator: QuantizeRows) -> KernelCall:
    (source,), outputs = graph.inputs_of(node), graph.outputs_of(node)
    rows = outputs[1].elements
    names = ("output", "scales", "zero_points")[: len(outputs)]
    word = "quantize_rows_asymmetric" if operator.asymmetric else "quantize_rows"
    return KernelCall(word, _HEADER, (
        reads("input", source),
        *(writes(name, tensor) for name, tensor in zip(names, outputs, strict=True)),
    ), (f"mlf_{word}({rows}, {source.elements // rows}, input, {', '.join(names)});",))  # fmt: skip


def _lower_blockwise(graph: Graph, node: Node) -> KernelCall:
    given, (output,) = graph.inputs_of(node), graph.outputs_of(node)
    (values, scales, zero_points, weights), bias, blocks = given[:4], given.optional(4), given[5]
    outputs, inputs = weights.shape
    # The zero point of a row is known only at run time, and multiplies the sum of the weights times their block's
    # scale.
    real_sums = block_sums(weights.known, blocks.known)
    names = ("scales", "zero_points", "block_scales", "real_sums", "bias")
    fields = {"blocks": str(blocks.shape[1]), **{name: name for name in names}}
    sizes = {"rows": scales.elements, "inputs": inputs, "outputs": outputs}
    return KernelCall("fully_connected_blockwise", _HEADER, (
        reads("scales", scales),
        reads("zero_points", zero_points),
        array("block_scales", "float", blocks.known),
        array("real_sums", "float", real_sums),
        float_bias(None if bias is None else bias.data, outputs),
        reads("input", values),
        array("weights", "int8_t", weights.known),
        writes("output", output),
    ), (
        *struct_lines("mlf_matrix", "matrix", sizes),
        *struct_lines("mlf_blockwise", "layer", fields),
        "mlf_fully_connected_blockwise(&matrix, &layer, input, weights, output);",
    ))  # fmt: skip


def _lower_integer(graph: Graph, node: Node, operator: ConvInteger) -> KernelCall:
    """Return the call of ``mlf_conv2d_integer`` or ``mlf_depthwise_conv2d_integer``."""
    inputs, (output,) = graph.inputs_of(node), graph.outputs_of(node)
    (image, zero_point, weights), offsets = inputs[:3], inputs.optional(3)
    depthwise, axis = isinstance(operator.layer, DepthwiseConv2D), operator.layer.channel_axis
    sums = weights.known.astype(np.int64).sum(axis=tuple(other for other in range(4) if other != axis))
    size = weights.elements // weights.shape[axis]
    parameters = [
        reads("input", image),
        reads("zero_point", zero_point),
        array("weights", "int8_t", weights.known),
    ]
    rest: list[Parameter] = []
    arguments = "&window, input, *zero_point, weights"
    if offsets is not None and offsets.data is not None:
        # The kernel subtracts the zero point of the image times the sum of the weights without their own offsets.
        sums = sums - size * offsets.data.astype(np.int64)
        rest.append(array("offsets", "int32_t", offsets.data))
    if not depthwise:
        copied = size > weights.shape[3]
        rest += [scratch("int8_t", size)] if copied else []
        arguments += f", sums, {'offsets' if offsets is not None else 'NULL'}, {'scratch' if copied else 'NULL'}"
        parameters.append(array("sums", "int32_t", sums.astype(np.int32)))
    word = "depthwise_conv2d_integer" if depthwise else "conv2d_integer"
    lines = window_lines(node, operator.layer.window(weights), image, output)
    return KernelCall(word, "conv_integer.h", (
        *parameters, *rest, writes("output", output),
    ), (*lines, f"mlf_{word}({arguments}, output);"))  # fmt: skip


def _layer(node: Node, operator: Hybrid, tensors: HybridTensors) -> tuple[str, Sequence[str], int]:
    """Return the name of the layer, the lines with its sizes, and the bytes of scratch memory."""
    layer, weights = operator.layer, tensors.weights
    if isinstance(layer, Convolution):
        lines = window_lines(node, layer.window(weights), tensors.values, tensors.output)
        if isinstance(layer, DepthwiseConv2D):
            return "depthwise_conv2d", lines, 0
        size = weights.elements // weights.shape[0]
        return "conv2d", lines, size if size > weights.shape[3] else 0
    outputs, inputs = weights.shape
    fields = {"rows": tensors.values.elements // inputs, "inputs": inputs, "outputs": outputs}
    return "fully_connected", struct_lines("mlf_matrix", "matrix", fields), 0


def _numbers(operator: Hybrid, tensors: HybridTensors) -> list[Parameter]:
    """Return the parameters with scales, zero points and biases."""
    data = tensors.weights.known
    by_channel = np.array(tensors.weights.affine.scales, np.float32)
    bias = None if tensors.bias is None else tensors.bias.data
    found = [
        reads("scales", tensors.scales),
        array("weight_scales", "float", by_channel),
        float_bias(bias, data.shape[operator.channel_axis]),
    ]
    if tensors.zero_points is not None:
        axes = tuple(axis for axis in range(data.ndim) if axis != operator.channel_axis)
        # Only for rows with a zero point: symmetric ones have none to subtract.
        sums = data.sum(axis=axes, dtype=np.int32)
        found += [reads("zero_points", tensors.zero_points), array("weight_sums", "int32_t", sums)]
    return found


def _struct(operator: Hybrid, tensors: HybridTensors) -> Sequence[str]:
    offset = tensors.zero_points is not None
    fields = {
        "scales": "scales",
        "zero_points": "zero_points" if offset else "NULL",
        "weight_scales": "weight_scales",
        "step": str(int(tensors.weights.affine.per_channel)),
        "weight_sums": "weight_sums" if offset else "NULL",
        "bias": "bias",
        "channel_first": trained(int(operator.channel_first(tensors.weights))),
        "range": "range",
    }
    return struct_lines("mlf_hybrid", "hybrid", fields)
