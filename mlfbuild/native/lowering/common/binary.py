"""Operators of two tensors that broadcast."""

from __future__ import annotations

from collections.abc import Callable

from mlfbuild.native.graph import (
    C_TYPES,
    Activation,
    BinaryRescales,
    Graph,
    Node,
    Operator,
    Rescale,
    Tensor,
    activation_range,
)
from mlfbuild.native.graph.bases import QUANTIZED, Arithmetic, Binary, binary_tensors
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter
from mlfbuild.native.lowering.common.activation import range_line, suffix
from mlfbuild.native.lowering.common.broadcast import broadcast_lines, in_place
from mlfbuild.native.settings import CodegenSettings

Fields = dict[str, int | Rescale]
Rescales = Callable[[Tensor, Tensor, Tensor], Fields]
"""The rescalings in the struct of a kernel, from both inputs and the output."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of a kernel that computes with stored values."""
    return lower_binary(graph, node)


def lower_binary(graph: Graph, node: Node, struct: str = "", rescales: Rescales | None = None) -> KernelCall:
    """Return the call of ``mlf_<operator>_<type>`` in the header of the operator's family.

    With ``rescales``, kernels of quantised types get a ``struct`` of constants; without, they need stored values only.
    """
    operator = node.operator
    assert isinstance(operator, Binary)
    word = operator.name.lower()
    first, second, output = binary_tensors(graph.inputs_of(node), graph.outputs_of(node))
    lines = [*broadcast_lines(node, (first, second), output, "mlf_broadcast")]
    parameters = [
        Parameter(f"const {C_TYPES[first.dtype]} *", "first", first.name),
        Parameter(f"const {C_TYPES[second.dtype]} *", "second", second.name),
        Parameter(f"{C_TYPES[output.dtype]} *", "output", output.name),
    ]
    arguments = ["&shape", "first", "second", "output"]
    if rescales is not None and first.dtype in QUANTIZED:
        constant = _quantization(struct, rescales(first, second, output), operator, (first, second, output))
        parameters.insert(0, Parameter(f"const struct {struct} *", "quantization", constant))
        arguments.insert(0, "quantization")
    elif isinstance(operator, Arithmetic):
        lines.append(range_line(operator.activation, output.dtype))
        arguments.insert(0, "range")
    lines.append(f"mlf_{word}_{suffix(first.dtype)}({', '.join(arguments)});")
    overwrites = in_place((first, second), output)
    return KernelCall(word, f"{operator.family()}.h", tuple(parameters), tuple(lines), overwrites)


def three_fields(rescales: BinaryRescales) -> Fields:
    """Return the fields of a struct that brings both inputs to one scale, and the result to the output's."""
    return {"first": rescales.inputs[0], "second": rescales.inputs[1], "output": rescales.output}


def _quantization(
    struct: str, rescales: Fields, operator: Operator, tensors: tuple[Tensor, Tensor, Tensor]
) -> Constant:
    first, second, output = tensors
    fields: Fields = {"first_zero_point": first.affine.zero_point, "second_zero_point": second.affine.zero_point}
    if output.dtype in QUANTIZED:
        activation = operator.activation if isinstance(operator, Arithmetic) else Activation.NONE
        minimum, maximum = activation_range(activation, output)
        fields.update(output_zero_point=output.affine.zero_point, minimum=minimum, maximum=maximum)
    return Constant.struct("quantization", struct, fields | rescales)
