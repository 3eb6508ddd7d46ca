"""Operators of two tensors that broadcast."""

from __future__ import annotations

from mlfbuild.native.graph import (
    Activation,
    BinaryRescales,
    DType,
    Graph,
    Node,
    Operator,
    Rescale,
    Tensor,
    activation_range,
    comparison_rescale,
    multiply_rescale,
    prelu_rescales,
    squared_difference_rescales,
)
from mlfbuild.native.graph.bases import QUANTIZED, Arithmetic, Binary, binary_tensors
from mlfbuild.native.graph.ops import Addition, ComparisonOperator, Div, Mul, Ordering, PRelu, SquaredDifference
from mlfbuild.native.lowering.call import Constant, KernelCall
from mlfbuild.native.lowering.common.activation import range_line, suffix
from mlfbuild.native.lowering.common.broadcast import broadcast_lines, in_place
from mlfbuild.native.lowering.common.parameters import constant, reads, writes
from mlfbuild.native.settings import CodegenSettings

_Fields = dict[str, int | Rescale]


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_<operator>_<type>`` in the header of the operator's family.

    Kernels of quantised types get a struct of constants; the others need stored values only.
    """
    operator = node.operator
    assert isinstance(operator, Binary)
    word = operator.name.lower()
    first, second, output = tensors = binary_tensors(graph.inputs_of(node), graph.outputs_of(node))
    lines = [*broadcast_lines(node, (first, second), output, "mlf_broadcast")]
    parameters = [reads("first", first), reads("second", second), writes("output", output)]
    arguments = ["&shape", "first", "second", "output"]
    rescales = _rescales(operator, first, second, output) if first.dtype in QUANTIZED else None
    if rescales is not None:
        parameters.insert(0, constant(binary_quantization(*rescales, operator, tensors)))
        arguments.insert(0, "quantization")
    elif isinstance(operator, Arithmetic):
        lines.append(range_line(operator.activation, output.dtype))
        arguments.insert(0, "range")
    lines.append(f"mlf_{word}_{suffix(first.dtype)}({', '.join(arguments)});")
    return KernelCall(word, f"{operator.family()}.h", tuple(parameters), tuple(lines), in_place(tensors[:2], output))


def _rescales(operator: Operator, first: Tensor, second: Tensor, output: Tensor) -> tuple[str, _Fields] | None:
    """Return the struct of a quantised kernel and its rescalings; ``None`` if stored values are all that it needs."""
    match operator:
        case Div():
            return "mlf_div_quantization", {"output": operator.numbers(first, second, output)}
        case Mul():
            return "mlf_mul_quantization", {"output": multiply_rescale(first, second, output)}
        case Addition():
            return "mlf_add_quantization", _three_fields(operator.numbers(first, second, output))
        case SquaredDifference():
            return "mlf_add_quantization", _three_fields(squared_difference_rescales(first, second, output))
        case PRelu():
            positive, negative = prelu_rescales(first, second, output)
            return "mlf_prelu_quantization", {"positive": positive, "negative": negative}
        # Both inputs of an int16 ordering have the same scale: stored values are compared as they are.
        case ComparisonOperator() if not (isinstance(operator, Ordering) and first.dtype is DType.INT16):
            fields: _Fields = {"first": comparison_rescale(first), "second": comparison_rescale(second)}
            return "mlf_comparison_quantization", fields
    return None


def sum_rescales(operator: Addition, tensors: tuple[Tensor, Tensor, Tensor]) -> _Fields:
    """Return the rescalings of a ``struct mlf_add_quantization``."""
    return _three_fields(operator.numbers(*tensors))


def _three_fields(rescales: BinaryRescales) -> _Fields:
    """Return the fields of a struct that brings both inputs to one scale, and the result to the output's."""
    return {"first": rescales.inputs[0], "second": rescales.inputs[1], "output": rescales.output}


def binary_quantization(
    struct: str, rescales: _Fields, operator: Operator, tensors: tuple[Tensor, Tensor, Tensor]
) -> Constant:
    """Return the ``struct`` of a quantised kernel of two tensors: zero points, the clamp of the output, ``rescales``.

    ``tensors`` are both inputs and the output. A comparison, whose output is not quantised, has no clamp.
    """
    first, second, output = tensors
    fields: _Fields = {"first_zero_point": first.affine.zero_point, "second_zero_point": second.affine.zero_point}
    if output.dtype in QUANTIZED:
        activation = operator.activation if isinstance(operator, Arithmetic) else Activation.NONE
        minimum, maximum = activation_range(activation, output)
        fields.update(output_zero_point=output.affine.zero_point, minimum=minimum, maximum=maximum)
    return Constant.struct("quantization", struct, fields | rescales)
