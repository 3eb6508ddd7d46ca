"""RELU and its bounded forms, LEAKY_RELU and PRELU."""

from __future__ import annotations

from mlfbuild.library.cgen import floating
from mlfbuild.native.graph import (
    DType,
    Graph,
    Node,
    Rescale,
    Tensor,
    activation_range,
    integer_range,
    leaky_rescale,
    requantize_rescale,
)
from mlfbuild.native.graph.ops import LeakyRelu, PRelu, Relu
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common import binary
from mlfbuild.native.lowering.common.activation import float_range_line
from mlfbuild.native.lowering.common.parameters import struct
from mlfbuild.native.lowering.common.unary import lower_unary, unary_call, unary_tensors
from mlfbuild.native.lowering.trained import trained
from mlfbuild.native.settings import CodegenSettings

_NOTHING = Rescale(0, 0)


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of a table, a clamp, or a function of one factor for positive and one for negative values."""
    if isinstance(node.operator, PRelu):
        return binary.lower(graph, node, settings)
    source, output = unary_tensors(graph, node)
    assert isinstance(node.operator, Relu | LeakyRelu)
    if source.dtype is DType.INT8:
        return _int8(node.operator, source, output)
    if source.dtype is DType.INT16:
        return _int16(node.operator, source, output)
    return _float(node.operator, source, output)


def _int8(operator: Relu | LeakyRelu, source: Tensor, output: Tensor) -> KernelCall:
    # Equal scales need no table: a clamp costs no flash and is exact.
    if isinstance(operator, Relu) and source.quantization == output.quantization:
        bounds = [trained(bound, "int8_t") for bound in activation_range(operator.activation, output)]
        return unary_call(operator, source, output, "bound_int8", bounds)
    return lower_unary(operator, source, output)


def _int16(operator: Relu | LeakyRelu, source: Tensor, output: Tensor) -> KernelCall:
    """Return the call for an int16 function of one factor for positive and one for negative values."""
    kernel, negative = "rectify_int16", _NOTHING
    minimum, maximum = integer_range(output.dtype)
    positive = requantize_rescale(source, output)
    if isinstance(operator, Relu):
        minimum, maximum = activation_range(operator.activation, output)
        # RELU is the kernel with the same factor on both sides and a clamp; LEAKY_RELU has two factors.
        negative = positive
    else:
        # Multipliers have no sign, so that a negative alpha is a kernel that negates.
        kernel = "fold_int16" if operator.alpha < 0 else kernel
        negative = leaky_rescale(source, output, operator.alpha)
    factors: dict[str, int | Rescale] = {"positive": positive, "negative": negative}
    fields = {"minimum": minimum, "maximum": maximum, **factors}
    return unary_call(operator, source, output, kernel, ("slopes",), (struct("slopes", "mlf_slopes", fields),))


def _float(operator: Relu | LeakyRelu, source: Tensor, output: Tensor) -> KernelCall:
    if isinstance(operator, Relu):
        lines = (float_range_line(operator.activation),)
        return unary_call(operator, source, output, "relu_float", ("range",), lines=lines)
    return unary_call(operator, source, output, "leaky_relu_float", (floating(operator.alpha),))
