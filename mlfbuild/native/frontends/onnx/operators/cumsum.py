"""CumSum and CumProd, computed in a logarithmic number of steps."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter
from mlfbuild.native.frontends.onnx.conversion.selection import sliced
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Operator, ops


def _accumulated(op: OpContext, operator: Operator, neutral: int) -> tuple[Value, ...]:
    """Combine each element with all before it: with the one at distance 1, then at distance 2, then 4, and so on."""
    value = op.value(0)
    axis = op.axis(op.constant_integer(1, "axis"), value.rank)
    backwards = op.integer("reverse", 0) != 0
    if op.integer("exclusive", 0):
        value = _shifted(op, value, axis, 1, neutral, backwards=backwards)
    step = 1
    while step < value.shape[axis]:
        before = _shifted(op, value, axis, step, neutral, backwards=backwards)
        value = Value(op.emit(operator, [value.tensor, before.tensor], value.tensor.shape), value.order)
        step *= 2
    return (value,)


def _shifted(op: OpContext, value: Value, axis: int, step: int, neutral: int, *, backwards: bool) -> Value:
    """Return ``value`` shifted by ``step`` along ``axis`` and filled with ``neutral``."""
    size, stored = value.shape[axis], value.stored(axis)
    if step >= size:
        return Value(op.filled("filling", value.tensor.shape, neutral, value.dtype.numpy), value.order)
    ranges = [range(other) for other in value.shape]
    ranges[axis] = range(step, size) if backwards else range(size - step)
    rest = sliced(op, value, ranges).tensor
    if value.dtype in ops.PadV2.types:
        pair = (0, step) if backwards else (step, 0)
        paddings = tuple(pair if other == stored else (0, 0) for other in range(value.rank))
        return Value(op.emit(ops.PadV2(paddings, neutral), [rest], value.tensor.shape), value.order)
    shape = [step if other == stored else length for other, length in enumerate(value.tensor.shape)]
    filling = op.filled("filling", shape, neutral, value.dtype.numpy)
    parts = [rest, filling] if backwards else [filling, rest]
    return Value(op.emit(ops.Concatenation(stored), parts, value.tensor.shape), value.order)


def _cumulative_sum(op: OpContext) -> tuple[Value, ...]:
    return _accumulated(op, ops.Add(), 0)


def _cumulative_product(op: OpContext) -> tuple[Value, ...]:
    return _accumulated(op, ops.Mul(), 1)


OPERATORS: Mapping[str, Converter] = {
    "CumProd": _cumulative_product,
    "CumSum": _cumulative_sum,
}
