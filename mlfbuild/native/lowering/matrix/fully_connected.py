"""FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlfbuild.native.graph import DType, Graph, Node, Tensor, double_scale
from mlfbuild.native.graph.bases import convolution_tensors
from mlfbuild.native.graph.ops import FullyConnected
from mlfbuild.native.lowering.call import (
    Candidate,
    Constant,
    KernelCall,
    Parameter,
    channel_table,
    float_bias,
    folded_bias,
    struct_lines,
)
from mlfbuild.native.lowering.common.activation import float_range_line, quantization_constant, zero_point
from mlfbuild.native.lowering.common.candidates import Specialised, choose
from mlfbuild.native.lowering.common.convolution import has_offset, lower_fully_connected_offset, wide_weights
from mlfbuild.native.lowering.common.int16 import int16_parameters, int16_range_line, int16_way
from mlfbuild.native.lowering.convolution.conv2d_dsp import lower_fully_connected_dsp
from mlfbuild.native.lowering.convolution.conv2d_float_mve import lower_fully_connected_float_mve
from mlfbuild.native.lowering.convolution.conv2d_float_vfp import lower_fully_connected_float_vfp
from mlfbuild.native.lowering.convolution.conv2d_int16_dsp import lower_fully_connected_int16_dsp
from mlfbuild.native.lowering.convolution.conv2d_int16_mve import lower_fully_connected_int16_mve
from mlfbuild.native.lowering.convolution.conv2d_thumb import lower_fully_connected_thumb
from mlfbuild.native.lowering.matrix.fully_connected_mve import lower_fully_connected_mve
from mlfbuild.native.settings import CodegenSettings

_SPECIALISED = Specialised[FullyConnected](
    "fully_connected",
    lower_fully_connected_float_mve,
    (("", lower_fully_connected_mve),),
    lower_fully_connected_dsp,
    lower_fully_connected_int16_mve,
    lower_fully_connected_int16_dsp,
    lower_fully_connected_thumb,
    lower_fully_connected_float_vfp,
)


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the fastest kernel that the CPU and the node permit."""
    operator = node.operator
    assert isinstance(operator, FullyConnected)
    if operator.in_double:
        return _lower_in_double(graph, node, operator)
    if has_offset(graph, node):
        return lower_fully_connected_offset(graph, node, operator)
    portable = Candidate("fully_connected", partial(_lower_portable, graph, node, operator))
    return choose((*_SPECIALISED.candidates(graph, node, operator, settings), portable))


def _lower_portable(graph: Graph, node: Node, operator: FullyConnected) -> KernelCall:
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    bias_data = None if bias is None else bias.data
    matrix = _matrix_lines(source, weights)
    if source.dtype is DType.FLOAT32:
        return KernelCall("fully_connected", "fully_connected.h", (
            Parameter("const float *", "input", source.name),
            Parameter("const float *", "weights", Constant.array("weights", "float", weights.known)),
            Parameter("const float *", "bias", float_bias(bias_data, weights.shape[0])),
            Parameter("float *", "output", output.name),
        ), (
            *matrix,
            float_range_line(operator.activation),
            "mlf_fully_connected_float(&matrix, range, input, weights, bias, output);",
        ))  # fmt: skip
    if source.dtype is DType.INT16:
        return _lower_int16(graph, node, operator, matrix)
    folded = folded_bias(bias_data, weights.known, 0, zero_point(source))
    return KernelCall("fully_connected", "fully_connected.h", (
        Parameter("const struct mlf_quantization *", "quantization",
                  quantization_constant(source, output, operator.activation)),
        Parameter("const int8_t *", "input", source.name),
        Parameter("const int8_t *", "weights", Constant.array("weights", "int8_t", weights.known)),
        Parameter("const struct mlf_channel *", "channels",
                  channel_table(folded, operator.rescales(source, weights, output))),
        Parameter("int8_t *", "output", output.name),
    ), (
        *matrix,
        "mlf_fully_connected_int8(&matrix, quantization, input, weights, channels, output);",
    ))  # fmt: skip


def _lower_in_double(graph: Graph, node: Node, operator: FullyConnected) -> KernelCall:
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    # Of the weights without their zero point, which is how the kernel multiplies them.
    folded = folded_bias(None if bias is None else bias.data, wide_weights(weights), 0, zero_point(source))
    scale, kernel = double_scale(source, weights, output), "mlf_fully_connected_in_double_int8"
    fields = {
        # The mantissa has 53 bits. In two parts, each product with a 32-bit sum fits into 64 bits.
        "high": f"{scale.mantissa >> 27}U",
        "low": f"{scale.mantissa & ((1 << 27) - 1)}U",
        "shift": str(min(scale.shift - 27, 63)),
    }
    return KernelCall("fully_connected", "fully_connected_in_double.h", (
        Parameter("const struct mlf_quantization *", "quantization",
                  quantization_constant(source, output, operator.activation)),
        Parameter("const int8_t *", "input", source.name),
        Parameter("const int8_t *", "weights", Constant.array("weights", "int8_t", weights.known)),
        Parameter("const int32_t *", "bias", Constant.array("bias", "int32_t", folded)),
        Parameter("int8_t *", "output", output.name),
    ), (
        *_matrix_lines(source, weights),
        *struct_lines("mlf_double_scale", "scale", fields),
        f"{kernel}(&matrix, &scale, quantization, {zero_point(weights)}, input, weights, bias, output);",
    ))  # fmt: skip


def _lower_int16(graph: Graph, node: Node, operator: FullyConnected, matrix: Sequence[str]) -> KernelCall:
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    wide, rescales = operator.sums_are_wide(source, bias), operator.rescales(source, weights, output)
    constant = Constant.array("weights", "int8_t", weights.known)
    way = int16_way(wide=wide, fine=operator.fine)
    parameters = int16_parameters(source, constant, bias, rescales, output, way)
    return KernelCall("fully_connected", "fully_connected_int16.h", parameters, (
        *matrix,
        int16_range_line(operator.activation, output),
        f"mlf_fully_connected_int16_{way}(&matrix, range, input, weights, channels, output);",
    ))  # fmt: skip


def _matrix_lines(source: Tensor, weights: Tensor) -> Sequence[str]:
    outputs, inputs = weights.shape
    fields = {"rows": str(source.elements // inputs), "inputs": str(inputs), "outputs": str(outputs)}
    return struct_lines("mlf_matrix", "matrix", fields)
