"""BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot and BitShift, of narrow integers as int32 and of uint32 as int64."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter
from mlfbuild.native.frontends.onnx.conversion.elementwise import WIDER, as_type, chosen, combined
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, GraphError, Operator, ops


def _bitwise(operator: Operator) -> Converter:
    def convert(op: OpContext) -> tuple[Value, ...]:
        return (_on_bits(op, operator, _integers(op, 0), _integers(op, 1)),)

    return convert


def _not(op: OpContext) -> tuple[Value, ...]:
    value = _integers(op, 0)
    ones = op.made(op.weights("ones", np.array(~value.dtype.numpy.type(0), value.dtype.numpy)))
    return (_on_bits(op, ops.BitwiseXor(), value, ones),)


def _shift(op: OpContext) -> tuple[Value, ...]:
    """Shift integers; a negative distance shifts all bits out, as in ONNX's reference evaluator."""
    direction = op.text("direction", "")
    if direction not in _SHIFTS:
        raise GraphError(op.node.place, f"the direction {direction!r} is neither 'LEFT' nor 'RIGHT'")
    value, places = _integers(op, 0), _integers(op, 1)
    dtype = value.dtype
    if dtype in WIDER and places.dtype is dtype:
        value, places = as_type(op, value, WIDER[dtype]), as_type(op, places, WIDER[dtype])
    zero, all_bits = (
        op.made(op.weights("bits", np.array(bits, places.dtype.numpy))) for bits in (0, places.dtype.size * 8)
    )
    if dtype not in {DType.UINT8, DType.UINT16, DType.UINT32}:
        negative = combined(op, ops.Less(), places, zero, dtype=DType.BOOL)
        places = chosen(op, negative, all_bits, places)
    if dtype is DType.UINT64 and direction == "RIGHT":
        return (as_type(op, _without_sign(op, value, places), dtype),)
    return (_on_bits(op, _SHIFTS[direction], value, places, dtype),)


def _without_sign(op: OpContext, value: Value, places: Value) -> Value:
    """Move the bits of the int64 ``value`` down, with zeros above them: first by one place, then by the others."""
    one, none, highest = (
        Value(op.weights("bits", np.array(bits, np.int64)), ()) for bits in (1, 0, np.iinfo(np.int64).max)
    )
    half = combined(op, ops.BitwiseAnd(), combined(op, ops.RightShift(), value, one), highest)
    moved = combined(op, ops.RightShift(), half, combined(op, ops.Sub(), places, one))
    return chosen(op, combined(op, ops.Equal(), places, none, dtype=DType.BOOL), value, moved)


_SHIFTS: Mapping[str, Operator] = {"LEFT": ops.LeftShift(), "RIGHT": ops.RightShift()}


def _integers(op: OpContext, index: int) -> Value:
    value = op.value(index)
    if value.dtype in {DType.BOOL, DType.FLOAT32}:
        raise op.type_unsupported(value.tensor, "integers")
    return value


def _on_bits(op: OpContext, operator: Operator, first: Value, second: Value, result: DType | None = None) -> Value:
    dtype = result or first.dtype
    if dtype in WIDER and second.dtype is dtype:
        first, second = as_type(op, first, WIDER[dtype]), as_type(op, second, WIDER[dtype])
    return as_type(op, combined(op, operator, first, second), dtype)


OPERATORS: Mapping[str, Converter] = {
    "BitShift": _shift,
    "BitwiseAnd": _bitwise(ops.BitwiseAnd()),
    "BitwiseNot": _not,
    "BitwiseOr": _bitwise(ops.BitwiseOr()),
    "BitwiseXor": _bitwise(ops.BitwiseXor()),
}
