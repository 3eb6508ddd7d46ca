"""Pow: constant whole exponents by repeated squaring, other constants by exp and log, computed ones by POW."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    divide,
    multiply,
    of_one_tensor,
    relation,
    unary,
)
from mlfbuild.native.frontends.onnx.operators.elementwise import NARROW, WIDER, as_type, chosen, combined
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops

_GREATEST_POWER = 16


def _power(site: OnnxSite) -> tuple[Value, ...]:
    """Raise X to a constant power, or to one per element."""
    if site.has(1) and not site.is_constant(1):
        return (_computed(site, site.value(0), site.value(1)),)
    exponents = site.constant(1, "exponent").astype(np.float64)
    if exponents.size == 0 or not np.isfinite(exponents).all():
        raise GraphError(site.node.place, "has exponents that are no numbers")
    power = float(exponents.reshape(-1)[0])
    if (exponents != power).any() or _widens(site.value(0).shape, exponents.shape):
        return (_each(site, site.value(0), exponents),)
    if power in _ROOTS:
        return of_one_tensor(lambda site, x: unary(site, _ROOTS[power], x))(site)
    if power.is_integer():
        _check_whole(site, exponents)
        return of_one_tensor(lambda site, x: whole_power(site, x, int(power)))(site)
    return of_one_tensor(lambda site, x: positive_power(site, x, power))(site)


def _computed(site: OnnxSite, base: Value, exponent: Value) -> Value:
    """Return POW. Integers beyond 24 bits become even floats, and a negative base to an odd one gets its sign back."""
    if base.dtype is not DType.FLOAT32:
        return _of_integers(site, base, exponent)
    power = combined(site, ops.Pow(), base, as_type(site, exponent, DType.FLOAT32))
    if exponent.dtype is DType.FLOAT32 or exponent.dtype in NARROW:
        return power
    exponent = as_type(site, exponent, WIDER.get(exponent.dtype, exponent.dtype))
    zero, one = (Value(site.weights("bit", np.array(bit, exponent.dtype.numpy)), ()) for bit in (0, 1))
    odd = combined(site, ops.NotEqual(), combined(site, ops.BitwiseAnd(), exponent, one), zero, dtype=DType.BOOL)
    origin, inverse = site.number("zero", 0.0), divide(site, site.number("one", 1.0), base.tensor)  # -inf for -0
    below = [relation(site, ops.Less(), tensor, origin) for tensor in (base.tensor, inverse)]
    negative = Value(site.emit(ops.LogicalOr(), below, inverse.shape), base.order)
    turned = combined(site, ops.LogicalAnd(), odd, negative, dtype=DType.BOOL)
    wrong = Value(relation(site, ops.Greater(), power.tensor, origin), power.order)
    turned = combined(site, ops.LogicalAnd(), turned, wrong, dtype=DType.BOOL)
    return chosen(site, turned, Value(unary(site, ops.Neg(), power.tensor), power.order), power)


def _of_integers(site: OnnxSite, base: Value, exponent: Value) -> Value:
    """Return the powers of integers, which wrap; float exponents with a fraction give results without theirs."""
    if DType.UINT64 in {base.dtype, exponent.dtype} or DType.BOOL in {base.dtype, exponent.dtype}:
        raise site.type_unsupported(base.tensor, "other integers")
    whole = as_type(site, exponent, DType.INT64)
    power = combined(site, ops.Pow(), as_type(site, base, DType.INT64), whole)
    if exponent.dtype is DType.FLOAT32:
        real = combined(site, ops.Pow(), as_type(site, base, DType.FLOAT32), exponent)
        near = Value(unary(site, ops.Round(), real.tensor), real.order)  # the root of a square is a whole number
        distance = unary(site, ops.Abs(), combined(site, ops.Sub(), near, real).tensor)
        limit = multiply(site, unary(site, ops.Abs(), real.tensor), _ROUNDING)
        exact = Value(relation(site, ops.LessEqual(), distance, limit), real.order)
        real = as_type(site, chosen(site, exact, near, real), DType.INT64)
        same = combined(site, ops.Equal(), as_type(site, whole, DType.FLOAT32), exponent, dtype=DType.BOOL)
        power = chosen(site, same, power, real)
    return as_type(site, power, base.dtype)


_ROUNDING = 1e-6
"""The relative error of a power in float32 is less."""


def _widens(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether ``shape`` changes when it broadcasts with ``other``."""
    behind = shape[len(shape) - len(other) :] if len(other) <= len(shape) else ()
    return len(other) > len(shape) or any(size not in (1, own) for size, own in zip(other, behind, strict=True))


_ROOTS = {0.5: ops.Sqrt(), -0.5: ops.Rsqrt()}


def _check_whole(site: OnnxSite, exponents: Array) -> None:
    greatest = np.abs(exponents).max()
    if greatest > _GREATEST_POWER:
        raise site.unsupported(
            f"the exponent {greatest:g} is not supported", f"use whole exponents of at most {_GREATEST_POWER}"
        )


def whole_power(site: OnnxSite, x: Tensor, power: int) -> Tensor:
    """Return ``x`` to ``power`` by repeated squaring."""
    if power < 0:
        return divide(site, site.number("one", 1.0), whole_power(site, x, -power))
    result, square, rest = site.filled("one", x.shape, 1, x.dtype.numpy) if power == 0 else None, x, power
    while rest:
        if rest & 1:
            result = square if result is None else multiply(site, result, square)
        rest >>= 1
        square = multiply(site, square, square) if rest else square
    assert result is not None
    return result


def positive_power(site: OnnxSite, x: Tensor, power: Tensor | float) -> Tensor:
    """Return ``x`` to ``power`` as exp(power * log(x)): 0 for 0, NaN for negative numbers."""
    return unary(site, ops.Exp(), multiply(site, unary(site, ops.Log(), x), power))


def _each(site: OnnxSite, value: Value, exponents: Array) -> Value:
    """Raise X to one power per element; by repeated squaring if all are integers."""
    whole = np.rint(exponents)
    if (whole != exponents).any():
        powers = site.made(site.weights("exponents", exponents.astype(np.float32)))
        logarithm = Value(unary(site, ops.Log(), value.tensor), value.order)
        product = combined(site, ops.Mul(), logarithm, powers)
        return Value(unary(site, ops.Exp(), product.tensor), product.order)
    _check_whole(site, exponents)
    if (whole < 0).any():
        raise site.unsupported("different exponents, some below 0, are not supported")
    return _by_bits(site, value, whole.astype(np.int64))


def _by_bits(site: OnnxSite, value: Value, exponents: Array) -> Value:
    one = Value(site.weights("one", np.ones((), value.dtype.numpy)), ())
    result: Value | None = None
    square = value
    for bit in range(max(1, int(exponents.max()).bit_length())):
        if bit:
            square = Value(multiply(site, square.tensor, square.tensor), square.order)
        taken = site.made(site.weights("bits", (exponents >> bit & 1).astype(bool)))
        factor = chosen(site, taken, square, one)
        result = factor if result is None else combined(site, ops.Mul(), result, factor)
    assert result is not None
    return result


OPERATORS: Mapping[str, Converter] = {
    "Pow": _power,
}
