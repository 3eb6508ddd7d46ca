"""Softmax, LogSoftmax and Hardmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import (
    Converter,
    log_of_sum_of_exponentials,
    relation,
    subtract,
    unary,
)
from mlfbuild.native.frontends.onnx.layout import Order, Value, as_onnx
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, Quantization, Tensor, ops

_SHARES = Quantization((1 / 256,), (-128,))
"""The quantisation of SOFTMAX's int8 output."""


def _softmax(op: OpContext) -> tuple[Value, ...]:
    held, target = op.held(0), op.held_target
    int8 = held.quantization is not None and held.tensor.dtype is DType.INT8
    if int8 and target is not None and target.scale >= _SHARES.scale:
        source, back = _rows(op, held)
        made = op.attempt(ops.Softmax(1.0), [source], source.shape, _SHARES)
        if made is not None:
            return (back(made),)
    return _along_rows(lambda op, rows: unary(op, ops.Softmax(1.0), rows))(op)


def _log_softmax(op: OpContext, rows: Tensor) -> Tensor:
    return subtract(op, rows, log_of_sum_of_exponentials(op, rows, (len(rows.shape) - 1,)))


def _along_rows(compute: Callable[[OpContext, Tensor], Tensor]) -> Callable[[OpContext], tuple[Value, ...]]:
    """Return a converter that applies ``compute`` to rows along the last dimension."""

    def convert(op: OpContext) -> tuple[Value, ...]:
        source, back = _rows(op, op.value(0))
        return (back(compute(op, source)),)

    return convert


def _hardmax(op: OpContext, rows: Tensor) -> Tensor:
    """Return 1 at the first greatest element of each row, 0 elsewhere."""
    if rows.dtype is not DType.FLOAT32:
        raise op.type_unsupported(rows, "float32")
    last = len(rows.shape) - 1
    op.check_room(rows.shape[-1:], DType.INT32.size)
    found = op.emit(ops.ArgMax(last), [rows], rows.shape[:-1], DType.INT32)
    column = op.builder.reshaped(found, (*rows.shape[:-1], 1))
    hit = relation(op, ops.Equal(), column, op.weights("places", np.arange(rows.shape[-1], dtype=np.int32)))
    return op.emit(ops.Cast(), [hit], rows.shape, DType.FLOAT32)


def _rows(op: OpContext, value: Value) -> tuple[Tensor, Callable[[Tensor], Value]]:
    """Return ``value`` with its rows along the last dimension, and a function that converts a result back.

    Before opset 13, all dimensions from ``axis`` on are one row.
    """
    if op.integer("opset", op.opset) >= 13:  # an attribute of QLinearSoftmax
        axis = op.axis(op.integer("axis", -1), value.rank)
        order = value.order if value.order[-1] == axis else _last(value.rank, axis)
        return op.builder.stored(value, order), lambda made: op.real(made, order)
    axis = op.axis(op.integer("axis", 1), value.rank)
    source = op.builder.stored(value, as_onnx(value.rank))
    rows = op.builder.reshaped(source, (math.prod(source.shape[:axis]), math.prod(source.shape[axis:])))
    return rows, lambda made: op.real(op.builder.reshaped(made, source.shape))


def _last(rank: int, axis: int) -> Order:
    return (*(other for other in as_onnx(rank) if other != axis), axis)


OPERATORS: Mapping[str, Converter] = {
    "Hardmax": _along_rows(_hardmax),
    "LogSoftmax": _along_rows(_log_softmax),
    "Softmax": _softmax,
}
