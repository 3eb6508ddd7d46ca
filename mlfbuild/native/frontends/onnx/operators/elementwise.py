"""One row for each operator that computes element by element, and for other short ones.

A row names the form that the operator takes in the graph (``conversion.elementwise``) and its class there. Operators
that the graph lacks are functions of those that it has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter, divide, of_one_tensor, relation, unary
from mlfbuild.native.frontends.onnx.conversion.elementwise import (
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
    of_two,
    plain,
    unsigned_quotient,
    with_integers,
)
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, Tensor, ops


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
    if dtype in WIDER and second.dtype is dtype:
        first, second = as_type(op, first, WIDER[dtype]), as_type(op, second, WIDER[dtype])
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
    magnitudes = (Value(unary(op, ops.Abs(), value.tensor), value.order) for value in (first, second))
    rest = combined(op, ops.FloorMod(), *magnitudes)
    negative = combined(op, ops.Less(), first, Value(op.number("zero", 0.0), ()), dtype=DType.BOOL)
    return chosen(op, negative, Value(unary(op, ops.Neg(), rest.tensor), rest.order), rest)


def _reciprocal(op: OpContext, x: Tensor) -> Tensor:
    return divide(op, op.number("one", 1.0), x)


def _tangent(op: OpContext, x: Tensor) -> Tensor:
    return divide(op, unary(op, ops.Sin(), x), unary(op, ops.Cos(), x))


def _is_nan(op: OpContext, x: Tensor) -> Tensor:
    return relation(op, ops.NotEqual(), x, x)


def _is_inf(op: OpContext) -> tuple[Value, ...]:
    positive, negative = op.integer("detect_positive", 1), op.integer("detect_negative", 1)

    def compute(op: OpContext, x: Tensor) -> Tensor:
        if positive and negative:
            return relation(op, ops.Equal(), unary(op, ops.Abs(), x), math.inf)
        if positive or negative:
            return relation(op, ops.Equal(), x, math.inf if positive else -math.inf)
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
    return (op.made(unary(op, ops.Sqrt(), made) if metric == "euclidean" else made),)


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
    "IsNaN": of_one_tensor(_is_nan),
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
    "Reciprocal": of_one_tensor(_reciprocal),
    "Round": plain("Round"),
    "Sigmoid": plain("Logistic"),
    "Sign": of_integers_too("Sign"),
    "Sin": plain("Sin"),
    "Sinh": plain("Sinh"),
    "Sqrt": with_integers("Sqrt"),
    "Sub": of_two("Sub"),
    "Sum": of_any_number("Add"),
    "Tan": of_one_tensor(_tangent),
    "Tanh": plain("Tanh"),
    "Xor": logical("NotEqual"),
}
