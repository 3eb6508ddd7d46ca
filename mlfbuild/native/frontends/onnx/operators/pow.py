"""Pow: constant whole exponents by repeated squaring, other constants by exp and log, computed ones by POW."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import (
    Converter,
    divide,
    multiply,
    of_one_tensor,
    positive_power,
    relation,
    unary,
    whole_power,
)
from mlfbuild.native.frontends.onnx.conversion.elementwise import NARROW, WIDER, as_type, chosen, combined
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, DType, GraphError, ops

_GREATEST_POWER = 16


def _power(op: OpContext) -> tuple[Value, ...]:
    """Raise X to a constant power, or to one per element."""
    if op.has(1) and not op.is_constant(1):
        return (_computed(op, op.value(0), op.value(1)),)
    exponents = op.constant(1, "exponent").astype(np.float64)
    if exponents.size == 0 or not np.isfinite(exponents).all():
        raise GraphError(op.node.place, "has exponents that are no numbers")
    power = float(exponents.reshape(-1)[0])
    if (exponents != power).any() or _widens(op.value(0).shape, exponents.shape):
        return (_each(op, op.value(0), exponents),)
    if power in _ROOTS:
        return of_one_tensor(lambda op, x: unary(op, _ROOTS[power], x))(op)
    if power.is_integer():
        _check_whole(op, exponents)
        return of_one_tensor(lambda op, x: whole_power(op, x, int(power)))(op)
    return of_one_tensor(lambda op, x: positive_power(op, x, power))(op)


def _computed(op: OpContext, base: Value, exponent: Value) -> Value:
    """Return POW. Integers beyond 24 bits become even floats, and a negative base to an odd one gets its sign back."""
    if base.dtype is not DType.FLOAT32:
        return _of_integers(op, base, exponent)
    power = combined(op, ops.Pow(), base, as_type(op, exponent, DType.FLOAT32))
    # float32 has these exponents exactly, and with them whether they are odd.
    if exponent.dtype is DType.FLOAT32 or exponent.dtype in NARROW:
        return power
    exponent = as_type(op, exponent, WIDER.get(exponent.dtype, exponent.dtype))
    zero, one = (Value(op.weights("bit", np.array(bit, exponent.dtype.numpy)), ()) for bit in (0, 1))
    odd = combined(op, ops.NotEqual(), combined(op, ops.BitwiseAnd(), exponent, one), zero, dtype=DType.BOOL)
    origin, inverse = op.number("zero", 0.0), divide(op, op.number("one", 1.0), base.tensor)  # -inf for -0
    below = [relation(op, ops.Less(), tensor, origin) for tensor in (base.tensor, inverse)]
    negative = Value(op.emit(ops.LogicalOr(), below, inverse.shape), base.order)
    turned = combined(op, ops.LogicalAnd(), odd, negative, dtype=DType.BOOL)
    wrong = Value(relation(op, ops.Greater(), power.tensor, origin), power.order)
    turned = combined(op, ops.LogicalAnd(), turned, wrong, dtype=DType.BOOL)
    return chosen(op, turned, Value(unary(op, ops.Neg(), power.tensor), power.order), power)


def _of_integers(op: OpContext, base: Value, exponent: Value) -> Value:
    """Return the powers of integers, which wrap; float exponents with a fraction give results without theirs."""
    if DType.UINT64 in {base.dtype, exponent.dtype} or DType.BOOL in {base.dtype, exponent.dtype}:
        raise op.type_unsupported(base.tensor, "other integers")
    whole = as_type(op, exponent, DType.INT64)
    power = combined(op, ops.Pow(), as_type(op, base, DType.INT64), whole)
    if exponent.dtype is DType.FLOAT32:
        real = combined(op, ops.Pow(), as_type(op, base, DType.FLOAT32), exponent)
        near = Value(unary(op, ops.Round(), real.tensor), real.order)  # the root of a square is a whole number
        distance = unary(op, ops.Abs(), combined(op, ops.Sub(), near, real).tensor)
        limit = multiply(op, unary(op, ops.Abs(), real.tensor), _ROUNDING)
        exact = Value(relation(op, ops.LessEqual(), distance, limit), real.order)
        real = as_type(op, chosen(op, exact, near, real), DType.INT64)
        same = combined(op, ops.Equal(), as_type(op, whole, DType.FLOAT32), exponent, dtype=DType.BOOL)
        power = chosen(op, same, power, real)
    return as_type(op, power, base.dtype)


_ROUNDING = 1e-6
"""The relative error of a power in float32 is less."""


def _widens(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether ``shape`` changes when it broadcasts with ``other``."""
    behind = shape[len(shape) - len(other) :] if len(other) <= len(shape) else ()
    return len(other) > len(shape) or any(size not in (1, own) for size, own in zip(other, behind, strict=True))


_ROOTS = {0.5: ops.Sqrt(), -0.5: ops.Rsqrt()}


def _check_whole(op: OpContext, exponents: Array) -> None:
    greatest = np.abs(exponents).max()
    if greatest > _GREATEST_POWER:
        raise op.unsupported(
            f"the exponent {greatest:g} is not supported", f"use whole exponents of at most {_GREATEST_POWER}"
        )


def _each(op: OpContext, value: Value, exponents: Array) -> Value:
    """Raise X to one power per element; by repeated squaring if all are integers."""
    whole = np.rint(exponents)
    if (whole != exponents).any():
        powers = op.made(op.weights("exponents", exponents.astype(np.float32)))
        logarithm = Value(unary(op, ops.Log(), value.tensor), value.order)
        product = combined(op, ops.Mul(), logarithm, powers)
        return Value(unary(op, ops.Exp(), product.tensor), product.order)
    _check_whole(op, exponents)
    if (whole < 0).any():
        raise op.unsupported("different exponents, some below 0, are not supported")
    return _by_bits(op, value, whole.astype(np.int64))


def _by_bits(op: OpContext, value: Value, exponents: Array) -> Value:
    return functools.reduce(functools.partial(combined, op, ops.Mul()), _factors(op, value, exponents))


def _factors(op: OpContext, value: Value, exponents: Array) -> Iterator[Value]:
    """Yield the power of ``value``, or 1, that each bit of ``exponents`` stands for."""
    one, square = Value(op.weights("one", np.ones((), value.dtype.numpy)), ()), value
    for bit in range(max(1, int(exponents.max()).bit_length())):
        if bit:
            square = Value(multiply(op, square.tensor, square.tensor), square.order)
        taken = op.made(op.weights("bits", (exponents >> bit & 1).astype(bool)))
        yield chosen(op, taken, square, one)


OPERATORS: Mapping[str, Converter] = {
    "Pow": _power,
}
