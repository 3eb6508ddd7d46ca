"""BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot and BitShift, of narrow integers as int32 and of uint32 as int64."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.elementwise import WIDER, as_type, chosen, combined
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, GraphError, Operator, ops


def _bitwise(operator: Operator) -> Converter:
    def convert(site: OnnxSite) -> tuple[Value, ...]:
        return (_on_bits(site, operator, _integers(site, 0), _integers(site, 1)),)

    return convert


def _not(site: OnnxSite) -> tuple[Value, ...]:
    value = _integers(site, 0)
    ones = site.made(site.weights("ones", np.array(~value.dtype.numpy.type(0), value.dtype.numpy)))
    return (_on_bits(site, ops.BitwiseXor(), value, ones),)


def _shift(site: OnnxSite) -> tuple[Value, ...]:
    """Shift integers; a negative distance shifts all bits out, as in ONNX's reference evaluator."""
    direction = site.text("direction", "")
    if direction not in _SHIFTS:
        raise GraphError(site.node.place, f"the direction {direction!r} is neither 'LEFT' nor 'RIGHT'")
    value, places = _integers(site, 0), _integers(site, 1)
    dtype = value.dtype
    if dtype in WIDER and places.dtype is dtype:
        value, places = as_type(site, value, WIDER[dtype]), as_type(site, places, WIDER[dtype])
    zero, all_bits = (
        site.made(site.weights("bits", np.array(bits, places.dtype.numpy))) for bits in (0, places.dtype.size * 8)
    )
    if dtype not in {DType.UINT8, DType.UINT16, DType.UINT32}:
        negative = combined(site, ops.Less(), places, zero, dtype=DType.BOOL)
        places = chosen(site, negative, all_bits, places)
    if dtype is DType.UINT64 and direction == "RIGHT":
        return (as_type(site, _without_sign(site, value, places), dtype),)
    return (_on_bits(site, _SHIFTS[direction], value, places, dtype),)


def _without_sign(site: OnnxSite, value: Value, places: Value) -> Value:
    """Move the bits of the int64 ``value`` down, with zeros above them: first by one place, then by the others."""
    one, none, highest = (
        Value(site.weights("bits", np.array(bits, np.int64)), ()) for bits in (1, 0, np.iinfo(np.int64).max)
    )
    half = combined(site, ops.BitwiseAnd(), combined(site, ops.RightShift(), value, one), highest)
    moved = combined(site, ops.RightShift(), half, combined(site, ops.Sub(), places, one))
    return chosen(site, combined(site, ops.Equal(), places, none, dtype=DType.BOOL), value, moved)


_SHIFTS: Mapping[str, Operator] = {"LEFT": ops.LeftShift(), "RIGHT": ops.RightShift()}


def _integers(site: OnnxSite, index: int) -> Value:
    value = site.value(index)
    if value.dtype in {DType.BOOL, DType.FLOAT32}:
        raise site.type_unsupported(value.tensor, "integers")
    return value


def _on_bits(site: OnnxSite, operator: Operator, first: Value, second: Value, result: DType | None = None) -> Value:
    dtype = result or first.dtype
    if dtype in WIDER and second.dtype is dtype:
        first, second = as_type(site, first, WIDER[dtype]), as_type(site, second, WIDER[dtype])
    return as_type(site, combined(site, operator, first, second), dtype)


OPERATORS: Mapping[str, Converter] = {
    "BitShift": _shift,
    "BitwiseAnd": _bitwise(ops.BitwiseAnd()),
    "BitwiseNot": _not,
    "BitwiseOr": _bitwise(ops.BitwiseOr()),
    "BitwiseXor": _bitwise(ops.BitwiseXor()),
}
