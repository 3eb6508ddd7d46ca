"""ADD, with broadcasting."""

from __future__ import annotations

from mlfbuild.compilers.native.literals import braces
from mlfbuild.compilers.native.ops.activation import float_range_line, zero_point
from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter, struct_lines, unsupported
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node, Tensor
from mlfbuild.graph.ops import Add
from mlfbuild.graph.quantize import activation_range, add_rescales

_DIMENSIONS = 4


def lower(graph: Graph, node: Node, _settings: Settings) -> Call:
    """Return the call of ``mlf_add_int8`` or ``mlf_add_float``."""
    operator = node.operator
    assert isinstance(operator, Add)
    first, second, output = _tensors(graph, node)
    shape = struct_lines("mlf_broadcast", "shape", _broadcast_fields(node, first, second, output))
    c_type = "float" if output.dtype is DType.FLOAT32 else "int8_t"
    operands = (
        Parameter(f"const {c_type} *", "first", first.name),
        Parameter(f"const {c_type} *", "second", second.name),
        Parameter(f"{c_type} *", "output", output.name),
    )
    # Elements are read and written in order: an input that is not repeated may be overwritten.
    overwrites = tuple(at for at, source in enumerate((first, second)) if source.elements == output.elements)
    if output.dtype is DType.FLOAT32:
        return Call("add", "add.h", operands, (
            *shape,
            float_range_line(operator.activation),
            "mlf_add_float(&shape, range, first, second, output);",
        ), overwrites)  # fmt: skip
    quantization = Parameter(
        "const struct mlf_add_quantization *", "quantization", _quantization(operator, first, second, output)
    )
    return Call("add", "add.h", (quantization, *operands), (
        *shape,
        "mlf_add_int8(&shape, quantization, first, second, output);",
    ), overwrites)  # fmt: skip


def _tensors(graph: Graph, node: Node) -> tuple[Tensor, Tensor, Tensor]:
    (first, second), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert first is not None and second is not None
    return first, second, output


def _quantization(operator: Add, first: Tensor, second: Tensor, output: Tensor) -> Constant:
    rescales = add_rescales(first, second, output)
    minimum, maximum = activation_range(operator.activation, output)
    return Constant.struct(
        "quantization",
        "mlf_add_quantization",
        {
            "first_zero_point": zero_point(first),
            "second_zero_point": zero_point(second),
            "output_zero_point": zero_point(output),
            "minimum": minimum,
            "maximum": maximum,
            "first": rescales.inputs[0],
            "second": rescales.inputs[1],
            "output": rescales.output,
        },
    )


def _broadcast_fields(node: Node, first: Tensor, second: Tensor, output: Tensor) -> dict[str, str]:
    """Return the fields of a ``struct mlf_broadcast``; neighbouring dimensions that repeat alike are merged."""
    rank = len(output.shape)
    shapes = [(1,) * (rank - len(tensor.shape)) + tensor.shape for tensor in (first, second)]
    merged: list[tuple[int, tuple[bool, ...]]] = []
    for axis, size in enumerate(output.shape):
        repeats = tuple(shape[axis] == 1 for shape in shapes)
        if size == 1:
            continue
        if merged and merged[-1][1] == repeats:
            merged[-1] = (merged[-1][0] * size, repeats)
        else:
            merged.append((size, repeats))
    if len(merged) > _DIMENSIONS:
        raise unsupported(node, f"{first} and {second} broadcast over more than {_DIMENSIONS} dimensions")
    merged = [(1, (True, True))] * (_DIMENSIONS - len(merged)) + merged
    return {
        "sizes": braces([size for size, _ in merged]),
        "first_strides": braces(_strides(merged, 0)),
        "second_strides": braces(_strides(merged, 1)),
    }


def _strides(merged: list[tuple[int, tuple[bool, ...]]], operand: int) -> list[int]:
    strides = []
    step = 1
    for size, repeats in reversed(merged):
        strides.append(0 if repeats[operand] else step)
        step *= 1 if repeats[operand] else size
    return strides[::-1]
