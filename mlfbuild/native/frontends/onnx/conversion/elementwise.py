"""Base of operators that combine elements of several tensors one by one, with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Order, Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, cast
from mlfbuild.native.frontends.onnx.operators.concatenation import common_order
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import UNSIGNED, Array, DType, GraphError, Operator, Quantization, Tensor, ops


def with_integer_form(operator: Operator) -> Converter:
    """Return a converter that uses the integer form of ``operator`` if the scale of the output is known."""

    def convert(site: OnnxSite) -> tuple[Value, ...]:
        return (_integer(site, operator) or arithmetic(site, operator, site.value(0), site.value(1)),)

    return convert


def _integer(site: OnnxSite, operator: Operator) -> Value | None:
    first, second, target = _held(site, 0), _held(site, 1), site.held_target
    if first is None or second is None or target is None or (first.tensor.constant and second.tensor.constant):
        return None
    if first.tensor.dtype is not second.tensor.dtype:
        return None
    order, tensors, shape = aligned(site, (first, second))
    made = site.attempt(operator, tensors, shape, target)
    return None if made is None else site.real(made, order)


def _held(site: OnnxSite, index: int) -> Value | None:
    """Return input ``index`` if it is held as integers, or is a constant number that they can hold exactly."""
    if site.quantized(index) is None and site.is_constant(index):
        return _constant_number(site, site.constant(index, "number"))
    value = site.held(index)
    return value if value.quantization is not None else None


def _constant_number(site: OnnxSite, number: Array) -> Value | None:
    if number.size != 1 or number.dtype != np.float32:
        return None
    real = float(number.reshape(-1)[0])
    if not np.isfinite(real) or abs(real) < np.finfo(np.float32).tiny * 128:
        return None
    dtype = np.int8 if site.target is None or site.target.holder is DType.INT8 else np.int16
    greatest = int(np.iinfo(dtype).max)
    scale = float(np.float32(abs(real) / greatest))
    stored = np.full(number.shape, greatest if real > 0 else -greatest, dtype)
    return site.real(site.weights("number", stored, Quantization((scale,), (0,))))


def of_any_number(operator: Operator) -> Converter:
    """Return a converter that combines any number of inputs, from the first to the last."""

    def convert(site: OnnxSite) -> tuple[Value, ...]:
        if len(site.node.inputs) == 1:
            return (site.held(0),)
        if len(site.node.inputs) == 2:
            return with_integer_form(operator)(site)
        result = site.value(0)
        for index in range(1, len(site.node.inputs)):
            result = arithmetic(site, operator, result, site.value(index))
        return (result,)

    return convert


def arithmetic(site: OnnxSite, operator: Operator, first: Value, second: Value) -> Value:
    """Apply ``operator`` to two values of one type; integers of ``WIDER`` wrap around as in C."""
    if first.dtype not in WIDER or second.dtype is not first.dtype:
        return combined(site, operator, first, second)
    if isinstance(operator, ops.Div) and first.dtype is DType.UINT64:
        return unsigned_quotient(site, first, second)[0]
    divided = isinstance(operator, ops.Div) and first.dtype in NARROW - {DType.UINT16}
    wide = DType.FLOAT32 if divided else WIDER[first.dtype]
    made = combined(site, operator, as_type(site, first, wide), as_type(site, second, wide))
    return as_type(site, made, first.dtype)


NARROW = frozenset({DType.INT8, DType.UINT8, DType.INT16, DType.UINT16})
"""Integers that float32 represents exactly, as well as the truncated quotient of any two."""

WIDER: Mapping[DType, DType] = {
    **dict.fromkeys(NARROW, DType.INT32), **dict.fromkeys(UNSIGNED, DType.INT64)
}  # fmt: skip
"""The types in which the graph computes those that it only converts; the same bits are the int64 of a uint64."""


def unsigned_quotient(site: OnnxSite, first: Value, second: Value) -> tuple[Value, Value]:
    """Return the quotient and the remainder of uint64 by divisions of int64; 0 if the divisor is 0.

    Twice the quotient of the upper 63 bits is the quotient, or less by 1. A divisor with the highest bit set is
    contained once at most.
    """

    def number(value: int) -> Value:
        return Value(site.weights("number", np.array(value, np.int64)), ())

    def whole(value: Value) -> Value:
        return as_type(site, value, DType.INT64)

    x, y, zero, one = whole(first), whole(second), number(0), number(1)
    half = combined(site, ops.BitwiseAnd(), combined(site, ops.RightShift(), x, one), number(np.iinfo(np.int64).max))
    even = combined(site, ops.Mul(), combined(site, ops.Div(), half, y), number(2))
    left = combined(site, ops.Sub(), x, combined(site, ops.Mul(), even, y))
    more = compared(site, ops.GreaterEqual(), as_type(site, left, DType.UINT64), second)
    small = combined(site, ops.Add(), even, whole(more))
    large = whole(compared(site, ops.GreaterEqual(), first, second))
    quotient = chosen(site, combined(site, ops.Less(), y, zero, dtype=DType.BOOL), large, small)
    valid = whole(combined(site, ops.NotEqual(), y, zero, dtype=DType.BOOL))
    rest = combined(site, ops.Sub(), x, combined(site, ops.Mul(), quotient, y))
    made = (combined(site, ops.Mul(), value, valid) for value in (quotient, rest))
    quotient, rest = (as_type(site, value, DType.UINT64) for value in made)
    return quotient, rest


def as_type(site: OnnxSite, value: Value, dtype: DType) -> Value:
    """Return the plain ``value`` converted to ``dtype``."""
    return Value(cast(site, value.tensor, dtype), value.order)


def extreme(site: OnnxSite, operator: Operator, first: Value, second: Value) -> Value:
    """Return the maximum or minimum of two values; integers of ``WIDER`` are compared and selected."""
    dtype = first.dtype
    if dtype not in WIDER or second.dtype is not dtype:
        return combined(site, operator, first, second)
    comparison = ops.Greater() if isinstance(operator, ops.Maximum) else ops.Less()
    condition = compared(site, comparison, first, second)
    if dtype is DType.UINT16 or dtype in UNSIGNED:
        first, second = as_type(site, first, WIDER[dtype]), as_type(site, second, WIDER[dtype])
    return as_type(site, chosen(site, condition, first, second), dtype)


def chosen(site: OnnxSite, condition: Value, first: Value, second: Value) -> Value:
    """Return elements of ``first`` where ``condition`` holds, else of ``second``."""
    order, tensors, shape = aligned(site, (condition, first, second))
    return Value(site.emit(ops.SelectV2(), tensors, shape, tensors[1].dtype), order)


def compared(site: OnnxSite, comparison: Operator, first: Value, second: Value) -> Value:
    """Compare two values of one type; integers of ``WIDER`` are compared as such, regardless of their scale."""
    if first.dtype in WIDER and second.dtype is first.dtype:
        first, second = in_order(site, first), in_order(site, second)
    return combined(site, comparison, first, second, dtype=DType.BOOL)


def in_order(site: OnnxSite, value: Value) -> Value:
    """Return ``value`` as integers of ``WIDER`` in the same order: those of uint64 have the highest bit inverted."""
    wide = as_type(site, value, WIDER[value.dtype])
    return _with_highest_bit_inverted(site, wide) if value.dtype is DType.UINT64 else wide


def from_order(site: OnnxSite, value: Value, dtype: DType) -> Value:
    """Return the integers of ``dtype`` for which ``in_order`` returned ``value``."""
    return as_type(site, _with_highest_bit_inverted(site, value) if dtype is DType.UINT64 else value, dtype)


def _with_highest_bit_inverted(site: OnnxSite, value: Value) -> Value:
    highest = Value(site.weights("highest bit", np.array(np.iinfo(np.int64).min)), ())
    return combined(site, ops.BitwiseXor(), value, highest)


def combined(site: OnnxSite, operator: Operator, *values: Value, dtype: DType | None = None) -> Value:
    """Apply ``operator`` to values of one kind, stored in a common order."""
    order, tensors, shape = aligned(site, values)
    quantization = tensors[-1].quantization
    return values[-1].moved(site.emit(operator, tensors, shape, dtype, quantization), order) if dtype is None else (
        site.made(site.emit(operator, tensors, shape, dtype), order)
    )  # fmt: skip


def aligned(site: OnnxSite, values: Sequence[Value]) -> tuple[Order, list[Tensor], tuple[int, ...]]:
    """Return a common order, the tensors of ``values`` in it at full rank, and the shape to which they broadcast."""
    rank = max(value.rank for value in values)
    widest = [value for value in values if value.rank == rank]
    order = common_order(widest)
    tensors = [_widened(site, value, rank, order) for value in values]
    try:
        return order, tensors, np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    except ValueError:
        raise GraphError(site.node.place, f"{' and '.join(map(str, tensors))} do not broadcast") from None


def _widened(site: OnnxSite, value: Value, rank: int, order: Order) -> Tensor:
    """Return ``value`` with ``rank`` dimensions (leading ones of size 1), stored in ``order``."""
    missing = rank - value.rank
    if missing:
        tensor = site.builder.reshaped(value.tensor, (*(1,) * missing, *value.tensor.shape))
        value = value.moved(tensor, (*range(missing), *(axis + missing for axis in value.order)))
    return site.builder.stored(value, order)
