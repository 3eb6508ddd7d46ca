"""Operators of one tensor: int8 as a table of 256 bytes or a clamp, other types by kernels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.compilers.native.interface import C_TYPES
from mlfbuild.compilers.native.literals import floating
from mlfbuild.compilers.native.ops.activation import float_range_line, suffix
from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node, Operator, Tensor
from mlfbuild.graph.logistic_table import LOGISTIC_TABLE
from mlfbuild.graph.ops import Abs, Elu, Gelu, HardSwish, LeakyRelu, Neg, Relu, Rsqrt, Sqrt
from mlfbuild.graph.ops.logistic import Sigmoid
from mlfbuild.graph.ops.tabulated import Tabulated
from mlfbuild.graph.quantize import Rescale, activation_range, integer_range, requantize_rescale, scale_of
from mlfbuild.graph.rescales import leaky_rescale

_HEADER = "activations.h"
_MATH = "elementwise.h"
_NOTHING = Rescale(0, 0)


def lower(graph: Graph, node: Node, _settings: Settings) -> Call:
    """Return the call of a function, a table or a clamp."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert source is not None
    if source.dtype is DType.INT8:
        return _int8(node.operator, source, output)
    if source.dtype is DType.INT16:
        return _int16(node.operator, source, output)
    if isinstance(node.operator, Relu | LeakyRelu):
        return _float_activation(node.operator, source, output)
    if isinstance(node.operator, Gelu):
        kernel = "gelu_tanh_float" if node.operator.approximate else "gelu_float"
        return _call(node.operator, source, output, "gelu.h", kernel, ())
    kernel = f"{node.operator.name.lower()}_{suffix(source.dtype)}"
    return _call(node.operator, source, output, _header(node.operator), kernel, ())


def _int8(operator: Operator, source: Tensor, output: Tensor) -> Call:
    if isinstance(operator, Relu) and source.quantization == output.quantization:
        minimum, maximum = activation_range(operator.activation, output)
        return _call(operator, source, output, _HEADER, "bound_int8", (str(minimum), str(maximum)))
    every = Tensor(source.name, (256,), DType.INT8, source.quantization)
    all_values = np.arange(-128, 128, dtype=np.int8)
    (results,) = operator.reference(
        [every], [all_values], [Tensor(output.name, (256,), output.dtype, output.quantization)]
    )
    table = Parameter("const int8_t *", "table", Constant.array("table", "int8_t", results))
    return _call(operator, source, output, "unary.h", "lookup_int8", ("table",), (table,))


def _int16(operator: Operator, source: Tensor, output: Tensor) -> Call:
    if isinstance(operator, Sigmoid):
        scale = operator.table_scale(source)
        fields: dict[str, int | Rescale] = {"multiplier": scale.multiplier, "shift": scale.shift}
        parameters = (
            Parameter("const struct mlf_table_scale *", "scale", Constant.struct("scale", "mlf_table_scale", fields)),
            Parameter("const uint16_t *", "table", Constant.array("table", "uint16_t", LOGISTIC_TABLE)),
        )
        return _call(
            operator, source, output, _HEADER, f"{operator.name.lower()}_int16", ("scale", "table"), parameters
        )
    if isinstance(operator, Tabulated):
        table = Parameter(
            "const int16_t *", "table", Constant.array("table", "int16_t", operator.table(source, output))
        )
        return _call(operator, source, output, "unary.h", "lookup_int16", ("table",), (table,))
    if isinstance(operator, Sqrt):
        scales = (floating(scale_of(source)), floating(scale_of(output)))
        return _call(operator, source, output, _MATH, "sqrt_int16", scales)
    if isinstance(operator, Abs | Neg | Rsqrt):
        return _rescaled(operator, source, output)
    return _slopes(operator, source, output)


def _rescaled(operator: Abs | Neg | Rsqrt, source: Tensor, output: Tensor) -> Call:
    """Return the call for an int16 function whose result is brought to the output's scale."""
    rescale = operator.rescale(source, output)
    fields: dict[str, int | Rescale] = {"input_zero_point": 0, "output_zero_point": 0, "rescale": rescale}
    constant = Constant.struct("rescaling", "mlf_rescaling", fields)
    parameter = Parameter("const struct mlf_rescaling *", "rescaling", constant)
    return _call(operator, source, output, _MATH, f"{operator.name.lower()}_int16", ("rescaling",), (parameter,))


def _slopes(operator: Operator, source: Tensor, output: Tensor) -> Call:
    """Return the call for an int16 function of one factor for positive and one for negative values."""
    kernel, negative = "rectify_int16", _NOTHING
    minimum, maximum = integer_range(output.dtype)
    positive = requantize_rescale(source, output)
    if isinstance(operator, Relu):
        minimum, maximum = activation_range(operator.activation, output)
        negative = positive
    else:
        assert isinstance(operator, LeakyRelu)
        kernel = "fold_int16" if operator.alpha < 0 else kernel
        negative = leaky_rescale(source, output, operator.alpha)
    fields: dict[str, int | Rescale] = {
        "minimum": minimum,
        "maximum": maximum,
        "positive": positive,
        "negative": negative,
    }
    slopes = Constant.struct("slopes", "mlf_slopes", fields)
    return _call(
        operator,
        source,
        output,
        _HEADER,
        kernel,
        ("slopes",),
        (Parameter("const struct mlf_slopes *", "slopes", slopes),),
    )


def _float_activation(operator: Relu | LeakyRelu, source: Tensor, output: Tensor) -> Call:
    if isinstance(operator, Relu):
        lines = (float_range_line(operator.activation),)
        return _call(operator, source, output, _HEADER, "relu_float", ("range",), lines=lines)
    return _call(operator, source, output, _HEADER, "leaky_relu_float", (floating(operator.alpha),))


def _header(operator: Operator) -> str:
    return _HEADER if isinstance(operator, Elu | HardSwish | Sigmoid) else _MATH


def _call(
    operator: Operator,
    source: Tensor,
    output: Tensor,
    header: str,
    kernel: str,
    arguments: Sequence[str],
    parameters: Sequence[Parameter] = (),
    lines: Sequence[str] = (),
) -> Call:
    """Return the call of ``mlf_<kernel>`` with ``arguments`` before count, input and output."""
    c_type = C_TYPES[source.dtype]
    operands = (
        Parameter(f"const {c_type} *", "input", source.name),
        Parameter(f"{c_type} *", "output", output.name),
    )
    words = ", ".join((*arguments, str(source.elements), "input", "output"))
    return Call(operator.name.lower(), header, (*parameters, *operands), (*lines, f"mlf_{kernel}({words});"), (0,))
