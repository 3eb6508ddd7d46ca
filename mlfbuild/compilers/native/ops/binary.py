"""Operators of two tensors that broadcast: one table of kernels, one way to call them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlfbuild.compilers.native.interface import C_TYPES
from mlfbuild.compilers.native.ops.activation import range_line, suffix
from mlfbuild.compilers.native.ops.add_linear import lower_add_linear
from mlfbuild.compilers.native.ops.add_mve import lower_add_mve
from mlfbuild.compilers.native.ops.broadcast import broadcast_lines, in_place
from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import Activation, DType, Graph, Node, Operator, Tensor
from mlfbuild.graph.ops import (
    Add,
    Div,
    Equal,
    FloorDiv,
    FloorMod,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    LogicalAnd,
    LogicalOr,
    Maximum,
    Minimum,
    Mul,
    NotEqual,
    PRelu,
    SquaredDifference,
    Sub,
)
from mlfbuild.graph.ops.add import Sum
from mlfbuild.graph.ops.binary import Arithmetic, Binary, binary_tensors
from mlfbuild.graph.ops.comparisons import Ordering
from mlfbuild.graph.ops.rules import QUANTIZED
from mlfbuild.graph.quantize import Rescale, activation_range, zero_point_of
from mlfbuild.graph.rescales import (
    BinaryRescales,
    comparison_rescale,
    divide_rescale,
    multiply_rescale,
    prelu_rescales,
    squared_difference_rescales,
)

Fields = dict[str, int | Rescale]


@dataclass(frozen=True)
class _Kernel:
    """Kernels ``mlf_<word>_<type>`` in ``header``; those of quantised types take a struct of constants."""

    word: str
    header: str
    struct: str = ""
    rescales: Callable[[Operator, Tensor, Tensor, Tensor], Fields] | None = None
    """The rescalings in the struct; ``None`` where stored values are enough."""


def _three(rescales: BinaryRescales) -> Fields:
    return {"first": rescales.inputs[0], "second": rescales.inputs[1], "output": rescales.output}


def _sum(operator: Operator, first: Tensor, second: Tensor, output: Tensor) -> Fields:
    assert isinstance(operator, Sum)
    return _three(operator.numbers(first, second, output))


def _prelu(_: Operator, first: Tensor, second: Tensor, output: Tensor) -> Fields:
    positive, negative = prelu_rescales(first, second, output)
    return {"positive": positive, "negative": negative}


def _comparison(_: Operator, first: Tensor, second: Tensor, _output: Tensor) -> Fields:
    return {"first": comparison_rescale(first), "second": comparison_rescale(second)}


def _relation(word: str) -> _Kernel:
    return _Kernel(word, "comparisons.h", "mlf_comparison_quantization", _comparison)


_KERNELS: dict[type[Operator], _Kernel] = {
    Add: _Kernel("add", "add.h", "mlf_add_quantization", _sum),
    Div: _Kernel("div", "div.h", "mlf_div_quantization", lambda _, *tensors: {"output": divide_rescale(*tensors)}),
    Equal: _relation("equal"),
    FloorDiv: _Kernel("floor_div", "floor_div.h"),
    FloorMod: _Kernel("floor_mod", "floor_div.h"),
    Greater: _relation("greater"),
    GreaterEqual: _relation("greater_equal"),
    Less: _relation("less"),
    LessEqual: _relation("less_equal"),
    LogicalAnd: _Kernel("logical_and", "comparisons.h"),
    LogicalOr: _Kernel("logical_or", "comparisons.h"),
    Maximum: _Kernel("maximum", "maximum.h"),
    Minimum: _Kernel("minimum", "maximum.h"),
    Mul: _Kernel("mul", "mul.h", "mlf_mul_quantization", lambda _, *tensors: {"output": multiply_rescale(*tensors)}),
    NotEqual: _relation("not_equal"),
    PRelu: _Kernel("prelu", "activations.h", "mlf_prelu_quantization", _prelu),
    SquaredDifference: _Kernel(
        "squared_difference",
        "add.h",
        "mlf_add_quantization",
        lambda _, *tensors: _three(squared_difference_rescales(*tensors)),
    ),
    Sub: _Kernel("sub", "add.h", "mlf_add_quantization", _sum),
}


def lower(graph: Graph, node: Node, settings: Settings) -> Call:
    """Return the call of the first kernel that the processor has and that takes the node."""
    call = None
    if isinstance(node.operator, Sum) and graph.outputs_of(node)[0].dtype is DType.INT8:
        if settings.has("mve"):
            call = lower_add_mve(graph, node, node.operator)
        call = call or lower_add_linear(graph, node, node.operator)
    return call or _lower_portable(graph, node)


def _lower_portable(graph: Graph, node: Node) -> Call:
    """Return the call of ``mlf_<word>_<type>``."""
    operator = node.operator
    assert isinstance(operator, Binary)
    kernel = _KERNELS[type(operator)]
    first, second, output = binary_tensors(graph.inputs_of(node), graph.outputs_of(node))
    lines = [*broadcast_lines(node, (first, second), output, "mlf_broadcast")]
    parameters = [
        Parameter(f"const {C_TYPES[first.dtype]} *", "first", first.name),
        Parameter(f"const {C_TYPES[second.dtype]} *", "second", second.name),
        Parameter(f"{C_TYPES[output.dtype]} *", "output", output.name),
    ]
    arguments = ["&shape", "first", "second", "output"]
    stored = isinstance(operator, Ordering) and first.dtype is DType.INT16
    if kernel.rescales is not None and first.dtype in QUANTIZED and not stored:
        constant = _quantization(kernel, operator, first, second, output)
        parameters.insert(0, Parameter(f"const struct {kernel.struct} *", "quantization", constant))
        arguments.insert(0, "quantization")
    elif isinstance(operator, Arithmetic):
        lines.append(range_line(operator.activation, output.dtype))
        arguments.insert(0, "range")
    lines.append(f"mlf_{kernel.word}_{suffix(first.dtype)}({', '.join(arguments)});")
    return Call(kernel.word, kernel.header, tuple(parameters), tuple(lines), in_place((first, second), output))


def _quantization(kernel: _Kernel, operator: Operator, first: Tensor, second: Tensor, output: Tensor) -> Constant:
    assert kernel.rescales is not None
    fields: Fields = {"first_zero_point": zero_point_of(first), "second_zero_point": zero_point_of(second)}
    if output.dtype in QUANTIZED:
        activation = operator.activation if isinstance(operator, Arithmetic) else Activation.NONE
        minimum, maximum = activation_range(activation, output)
        fields.update(output_zero_point=zero_point_of(output), minimum=minimum, maximum=maximum)
    fields.update(kernel.rescales(operator, first, second, output))
    return Constant.struct("quantization", kernel.struct, fields)
