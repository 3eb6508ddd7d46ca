"""One row for each operator that computes element by element, and for other short ones.

A row names the form that the operator takes in the graph (``conversion.elementwise``) and its class there. Operators
that the graph lacks are functions of those that it has. Bitwise operators compute narrow integers as int32, and uint32
as int64. Pow is repeated squaring for constant whole exponents, exp and log for others, and POW for computed ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.elementwise import (
    NARROW,
    WIDER,
    accumulated,
    as_type,
    chosen,
    combined,
    comparison,
    extreme_of,
    logical,
    of_any_number,
    of_integers_too,
    of_one_tensor,
    of_two,
    plain,
    unsigned_quotient,
    widened,
    with_integers,
)
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Operator, Tensor, ops


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
    value, places = widened(op, value, places)
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
    first, second = widened(op, first, second)
    return as_type(op, combined(op, operator, first, second), dtype)


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
        return of_one_tensor(lambda op, x: op.unary(_ROOTS[power], x))(op)
    if power.is_integer():
        _check_whole(op, exponents)
        return of_one_tensor(lambda op, x: op.whole_power(x, int(power)))(op)
    return of_one_tensor(lambda op, x: op.positive_power(x, power))(op)


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
    origin, inverse = op.number("zero", 0.0), op.divide(op.number("one", 1.0), base.tensor)  # -inf for -0
    below = [op.relation(ops.Less(), tensor, origin) for tensor in (base.tensor, inverse)]
    negative = Value(op.emit(ops.LogicalOr(), below, inverse.shape), base.order)
    turned = combined(op, ops.LogicalAnd(), odd, negative, dtype=DType.BOOL)
    wrong = Value(op.relation(ops.Greater(), power.tensor, origin), power.order)
    turned = combined(op, ops.LogicalAnd(), turned, wrong, dtype=DType.BOOL)
    return chosen(op, turned, Value(op.unary(ops.Neg(), power.tensor), power.order), power)


def _of_integers(op: OpContext, base: Value, exponent: Value) -> Value:
    """Return the powers of integers, which wrap; float exponents with a fraction give results without theirs."""
    if DType.UINT64 in {base.dtype, exponent.dtype} or DType.BOOL in {base.dtype, exponent.dtype}:
        raise op.type_unsupported(base.tensor, "other integers")
    whole = as_type(op, exponent, DType.INT64)
    power = combined(op, ops.Pow(), as_type(op, base, DType.INT64), whole)
    if exponent.dtype is DType.FLOAT32:
        # Fractions of exponents only count in float32, whose results are brought back to whole numbers.
        real = combined(op, ops.Pow(), as_type(op, base, DType.FLOAT32), exponent)
        near = Value(op.unary(ops.Round(), real.tensor), real.order)  # the root of a square is a whole number
        distance = op.unary(ops.Abs(), combined(op, ops.Sub(), near, real).tensor)
        limit = op.multiply(op.unary(ops.Abs(), real.tensor), _ROUNDING)
        exact = Value(op.relation(ops.LessEqual(), distance, limit), real.order)
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
        # x ** y is exp(y * log(x)), which is NaN for a negative base, as it is for these exponents in numpy.
        logarithm = Value(op.unary(ops.Log(), value.tensor), value.order)
        product = combined(op, ops.Mul(), logarithm, powers)
        return Value(op.unary(ops.Exp(), product.tensor), product.order)
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
            square = Value(op.multiply(square.tensor, square.tensor), square.order)
        taken = op.made(op.weights("bits", (exponents >> bit & 1).astype(bool)))
        yield chosen(op, taken, square, one)


def _mean(op: OpContext) -> tuple[Value, ...]:
    """Take the mean of all inputs."""
    result = accumulated(op, ops.Add())
    share = op.number("share", 1 / len(op.node.inputs))
    return (Value(op.emit(ops.Mul(), [result.tensor, share], result.tensor.shape), result.order),)


def _modulo(op: OpContext) -> tuple[Value, ...]:
    """Return the remainder of a division, with the sign of the divisor, or of the dividend if ``fmod`` is set."""
    first, second, fmod = op.value(0), op.value(1), op.integer("fmod", 0)
    dtype = first.dtype
    if dtype is DType.FLOAT32:
        return (_float_remainder(op, first, second) if fmod else combined(op, ops.FloorMod(), first, second),)
    if dtype is second.dtype is DType.UINT64:
        return (unsigned_quotient(op, first, second)[1],)
    first, second = widened(op, first, second)
    rest = combined(op, ops.FloorMod(), first, second)
    if fmod:
        zero = Value(op.weights("zero", np.zeros((), rest.dtype.numpy)), ())
        signs = [combined(op, ops.Less(), value, zero, dtype=DType.BOOL) for value in (rest, first)]
        differ = combined(op, ops.NotEqual(), *signs, dtype=DType.BOOL)
        some = combined(op, ops.NotEqual(), rest, zero, dtype=DType.BOOL)
        turned = combined(op, ops.LogicalAnd(), differ, some, dtype=DType.BOOL)
        rest = chosen(op, turned, combined(op, ops.Sub(), rest, second), rest)
    return (as_type(op, rest, dtype),)


def _float_remainder(op: OpContext, first: Value, second: Value) -> Value:
    """Return the exact remainder of the magnitudes, with the sign of ``first``."""
    magnitudes = (Value(op.unary(ops.Abs(), value.tensor), value.order) for value in (first, second))
    rest = combined(op, ops.FloorMod(), *magnitudes)
    negative = combined(op, ops.Less(), first, Value(op.number("zero", 0.0), ()), dtype=DType.BOOL)
    return chosen(op, negative, Value(op.unary(ops.Neg(), rest.tensor), rest.order), rest)


def _is_inf(op: OpContext) -> tuple[Value, ...]:
    positive, negative = op.integer("detect_positive", 1), op.integer("detect_negative", 1)

    def compute(op: OpContext, x: Tensor) -> Tensor:
        if positive and negative:
            return op.relation(ops.Equal(), op.unary(ops.Abs(), x), math.inf)
        if positive or negative:
            return op.relation(ops.Equal(), x, math.inf if positive else -math.inf)
        raise op.unsupported("neither detect_positive nor detect_negative is set")

    return of_one_tensor(compute)(op)


def _det(op: OpContext) -> tuple[Value, ...]:
    source = op.tensor(0)
    return (op.made(op.emit(ops.Determinant(), [source], source.shape[:-2])),)


def _distances(op: OpContext) -> tuple[Value, ...]:
    """CDist of the domain com.microsoft, which skl2onnx writes for nearest neighbours with ``optim="cdist"``."""
    rows, points, metric = op.tensor(0), op.tensor(1), op.text("metric", "sqeuclidean")
    if metric not in {"euclidean", "sqeuclidean"}:
        raise op.unsupported(f"the metric {metric} is not supported", "use euclidean or sqeuclidean")
    made = op.emit(ops.SquaredDistances(), [rows, points], (*rows.shape[:1], *points.shape[:1]))
    return (op.made(op.unary(ops.Sqrt(), made) if metric == "euclidean" else made),)


OPERATORS: Mapping[str, Converter] = {
    "Abs": with_integers("Abs"),
    "Acos": plain("Acos"),
    "Acosh": plain("Acosh"),
    "Add": of_two("Add"),
    "And": logical("LogicalAnd"),
    "Asin": plain("Asin"),
    "Asinh": plain("Asinh"),
    "Atan": plain("Atan"),
    "Atanh": plain("Atanh"),
    "BitShift": _shift,
    "BitwiseAnd": _bitwise(ops.BitwiseAnd()),
    "BitwiseNot": _not,
    "BitwiseOr": _bitwise(ops.BitwiseOr()),
    "BitwiseXor": _bitwise(ops.BitwiseXor()),
    "CDist": _distances,
    "Ceil": plain("Ceil"),
    "Cos": plain("Cos"),
    "Cosh": plain("Cosh"),
    "Det": _det,
    "Div": of_two("Div"),
    "Equal": comparison("Equal"),
    "Erf": plain("Erf"),
    "Exp": with_integers("Exp"),
    "Floor": plain("Floor"),
    "Greater": comparison("Greater"),
    "GreaterOrEqual": comparison("GreaterEqual"),
    "HardSwish": with_integers("HardSwish"),
    "IsInf": _is_inf,
    "IsNaN": of_one_tensor(lambda op, x: op.relation(ops.NotEqual(), x, x)),
    "Less": comparison("Less"),
    "LessOrEqual": comparison("LessEqual"),
    "Log": with_integers("Log"),
    "Max": extreme_of("Maximum"),
    "Mean": _mean,
    "Min": extreme_of("Minimum"),
    "Mod": _modulo,
    "Mul": of_two("Mul"),
    "Neg": with_integers("Neg"),
    "Not": plain("LogicalNot"),
    "Or": logical("LogicalOr"),
    "Pow": _power,
    "Reciprocal": of_one_tensor(lambda op, x: op.divide(op.number("one", 1.0), x)),
    "Round": plain("Round"),
    "Sigmoid": plain("Logistic"),
    "Sign": of_integers_too("Sign"),
    "Sin": plain("Sin"),
    "Sinh": plain("Sinh"),
    "Sqrt": with_integers("Sqrt"),
    "Sub": of_two("Sub"),
    "Sum": of_any_number("Add"),
    "Tan": of_one_tensor(lambda op, x: op.divide(op.unary(ops.Sin(), x), op.unary(ops.Cos(), x))),
    "Tanh": plain("Tanh"),
    "Xor": logical("NotEqual"),
}
