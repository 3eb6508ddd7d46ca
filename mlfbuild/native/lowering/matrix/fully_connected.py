"""FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mlfbuild.native.graph import DType, Graph, Node, double_scale
from mlfbuild.native.graph.ops import FullyConnected
from mlfbuild.native.lowering.call import Candidate, Constant, KernelCall, channel_table, struct_lines
from mlfbuild.native.lowering.common.activation import float_range_line, zero_point
from mlfbuild.native.lowering.common.candidates import Specialised, choose
from mlfbuild.native.lowering.common.convolution import lower_offset, wide_weights
from mlfbuild.native.lowering.common.int16 import int16_parameters, int16_range_line, int16_way
from mlfbuild.native.lowering.common.layer import Weighted, int8_parameters
from mlfbuild.native.lowering.common.parameters import array, float_bias, reads, writes
from mlfbuild.native.lowering.convolution.conv2d_dsp import lower_matmul_dsp
from mlfbuild.native.lowering.convolution.conv2d_float_mve import lower_fully_connected_float_mve
from mlfbuild.native.lowering.convolution.conv2d_float_vfp import lower_fully_connected_float_vfp
from mlfbuild.native.lowering.convolution.conv2d_int16_dsp import lower_int16_dsp
from mlfbuild.native.lowering.convolution.conv2d_int16_mve import lower_int16_mve
from mlfbuild.native.lowering.convolution.conv2d_thumb import lower_thumb
from mlfbuild.native.lowering.matrix.fully_connected_mve import lower_fully_connected_mve
from mlfbuild.native.lowering.trained import trained
from mlfbuild.native.settings import CodegenSettings

_SPECIALISED = Specialised[FullyConnected](
    lower_fully_connected_float_mve, (("", lower_fully_connected_mve),), lower_matmul_dsp,
    lower_int16_mve, lower_int16_dsp, lower_thumb, lower_fully_connected_float_vfp,
)  # fmt: skip


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the fastest kernel that the CPU and the node permit."""
    assert isinstance(node.operator, FullyConnected)
    layer = Weighted(graph, node, node.operator, settings.replaceable)
    if layer.operator.in_double:
        return _lower_in_double(layer)
    if layer.has_offset:
        return lower_offset(layer)
    portable = Candidate("fully_connected", partial(_lower_portable, layer))
    return choose((*_SPECIALISED.candidates(layer, settings), portable))


def _lower_portable(layer: Weighted[FullyConnected]) -> KernelCall:
    if layer.source.dtype is DType.FLOAT32:
        return KernelCall("fully_connected", "fully_connected.h", (
            reads("input", layer.source),
            array("weights", "float", layer.weights.known),
            float_bias(layer.bias, layer.weights.shape[0]),
            writes("output", layer.output),
        ), (
            *_matrix_lines(layer),
            float_range_line(layer.operator.activation),
            "mlf_fully_connected_float(&matrix, range, input, weights, bias, output);",
        ))  # fmt: skip
    weights = array("weights", "int8_t", layer.weights.known)
    if layer.source.dtype is DType.INT16:
        way = int16_way(layer)
        return KernelCall("fully_connected", "fully_connected_int16.h", int16_parameters(layer, weights, way), (
            *_matrix_lines(layer),
            int16_range_line(layer.operator.activation, layer.output),
            f"mlf_fully_connected_int16_{way}(&matrix, range, input, weights, channels, output);",
        ))  # fmt: skip
    channels = channel_table(layer.folded_bias(), layer.rescales)
    return KernelCall("fully_connected", "fully_connected.h", int8_parameters(layer, weights, channels), (
        *_matrix_lines(layer),
        "mlf_fully_connected_int8(&matrix, quantization, input, weights, channels, output);",
    ))  # fmt: skip


def _lower_in_double(layer: Weighted[FullyConnected]) -> KernelCall:
    # Of the weights without their zero point, which is how the kernel multiplies them.
    bias = Constant.array("bias", "int32_t", layer.folded_bias(wide_weights(layer.weights)))
    scale, offset = double_scale(layer.source, layer.weights, layer.output), trained(zero_point(layer.weights))
    fields = {
        # The mantissa has 53 bits. In two parts, each product with a 32-bit sum fits into 64 bits.
        "high": trained(scale.mantissa >> 27, "uint32_t"),
        "low": trained(scale.mantissa & ((1 << 27) - 1), "uint32_t"),
        "shift": trained(min(scale.shift - 27, 63)),
    }
    parameters = int8_parameters(layer, array("weights", "int8_t", layer.weights.known), bias)
    arguments = f"&matrix, &scale, quantization, {offset}, input, weights, bias, output"
    return KernelCall("fully_connected", "fully_connected_in_double.h", parameters, (
        *_matrix_lines(layer),
        *struct_lines("mlf_double_scale", "scale", fields),
        f"mlf_fully_connected_in_double_int8({arguments});",
    ))  # fmt: skip


def _matrix_lines(layer: Weighted[FullyConnected]) -> Sequence[str]:
    outputs, inputs = layer.weights.shape
    return struct_lines("mlf_matrix", "matrix", {"rows": layer.rows, "inputs": inputs, "outputs": outputs})
