"""Tensors that become constants while a file is read, because operators may need them as a shape or as weights."""

from __future__ import annotations

from mlfbuild.native.frontends.tflite.conversion import SubgraphConversion
from mlfbuild.native.frontends.tflite.operators import SHAPES, TfliteRow
from mlfbuild.native.frontends.tflite.operators.site import ordered
from mlfbuild.native.frontends.tflite.reader import RawOperator
from mlfbuild.native.frontends.tflite.tensors import dequantized
from mlfbuild.native.graph import DType, GraphError, Node, Operands, OperatorError, ops
from mlfbuild.native.graph.bases import WHOLE, WrongShape, alternatives

# Shapes have at most 8 sizes, and paddings two for each.
_MOST_NUMBERS = 64
"""Elements up to which a tensor is computed at compile time, because it may be part of a shape."""


def settle_shape(conversion: SubgraphConversion, operator: RawOperator) -> None:
    """Make the output of an operator in ``SHAPES`` a constant."""
    kind, place = SHAPES[operator.code], conversion.place(operator)
    found = len(operator.inputs), len(operator.outputs)
    if found != (kind.values, 1):
        raise GraphError(place, f"has {found[0]} inputs and {found[1]} outputs, takes {kind.values} and writes 1")
    site = conversion.site(operator, conversion.inputs(operator), operator.outputs)
    output = site.output()
    if output.dtype not in kind.types:
        raise site.type_unsupported(output, alternatives(kind.types))
    # Before the value is made: a RANGE may be longer than memory.
    conversion.budget.take(place, output.size)
    value = kind.read(site)
    if value.shape != output.shape:
        reason = WrongShape.of(output, value.shape)
        if not conversion.tensors.reshape(operator.outputs[0], reason):
            raise site.wrong(reason)
    conversion.settle(site, operator.outputs[0], value)


def is_computed(conversion: SubgraphConversion, operator: RawOperator, row: TfliteRow, node: Node) -> bool:
    """Compute a node that makes few integers from constants; return whether it is one."""
    place, tensors = conversion.place(operator), conversion.tensors
    indices = ordered(operator.inputs, row.order)[: row.values]
    read = [None if index == -1 else tensors.at(place, index) for index in indices if not row.states]
    inputs = Operands(read, place)
    outputs = [tensors.at(place, index) for index in operator.outputs]
    if not read or not all(tensor.constant for tensor in inputs.present):
        return False
    # Larger tensors are no shapes, and would become constants of the code.
    if any(tensor.dtype not in (*WHOLE, DType.BOOL) or tensor.elements > _MOST_NUMBERS for tensor in outputs):
        return False
    reason = node.operator.check(inputs, outputs)
    if reason is not None:
        raise OperatorError(place, reason)
    values = inputs.map(lambda tensor: tensor.known)
    site = conversion.site(operator, read, operator.outputs)
    for index, value in zip(operator.outputs, node.operator.reference(inputs, values, outputs), strict=True):
        conversion.settle(site, index, value)
    return True


def is_dequantized(conversion: SubgraphConversion, operator: RawOperator) -> bool:
    """Compute float32 weights that the file stores as float16, or as integers with a scale for each channel.

    Return whether the output of ``operator``, a DEQUANTIZE, is such a constant.
    """
    if (len(operator.inputs), len(operator.outputs)) != (1, 1):
        return False
    place = conversion.place(operator)
    value = conversion.tensors.half(place, operator.inputs[0])
    # float16 and int8 weights are stored as such to save space in the file.
    if value is None:
        source = conversion.tensors.at(place, operator.inputs[0])
        value = dequantized(source) if source.dtype in ops.Dequantize.types else None
    if value is None:
        return False
    site = conversion.site(operator, (), operator.outputs)
    output = site.output()
    if (output.dtype, output.shape) != (DType.FLOAT32, value.shape):
        raise site.wrong(f"{output} should be float32{list(value.shape)}")
    conversion.budget.take(place, value.nbytes)
    conversion.settle(site, operator.outputs[0], value)
    return True
