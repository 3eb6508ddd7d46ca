"""Gather."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter
from mlfbuild.native.frontends.onnx.conversion.selection import check_indices, order_with, sliced, taken
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, GraphError, ops


def _gather(op: OpContext) -> tuple[Value, ...]:
    value = op.held(0)
    axis = op.axis(op.integer("axis", 0), value.rank)
    size = value.shape[axis]
    if not op.is_constant(1):
        return (_looked_up(op, value, axis),)
    positions = op.constant(1, "indices")
    check_indices(op, positions.dtype.name)
    if positions.size and not -size <= positions.min() <= positions.max() < size:
        raise GraphError(op.node.place, f"picks positions that are not in dimension {axis} of {value.tensor}")
    positions = positions % size
    if positions.ndim == 0:
        return (_picked(op, value, axis, int(positions)),)
    return (taken(op, value, axis, positions),)


def _picked(op: OpContext, value: Value, axis: int, position: int) -> Value:
    ranges = [range(position, position + 1) if other == axis else range(size) for other, size in enumerate(value.shape)]
    part = sliced(op, value, ranges)
    kept = [other for other in part.order if other != axis]
    shape = [part.shape[other] for other in kept]
    return value.moved(op.builder.reshaped(part.tensor, shape), order_with(part.order, axis, 0))


def _looked_up(op: OpContext, value: Value, axis: int) -> Value:
    """Gather by computed positions; negative ones count from the end, which GATHER does not support."""
    indices, size = op.tensor(1), value.shape[axis]
    check_indices(op, indices.dtype.value)
    number = op.emit(ops.Cast(), [indices], indices.shape, DType.FLOAT32)
    zero = op.weights("zero", np.array(0, indices.dtype.numpy))
    below = op.emit(ops.Less(), [indices, zero], indices.shape, DType.BOOL)
    turned = op.emit(ops.Add(), [number, op.number("size", size)], indices.shape)
    position = op.emit(ops.SelectV2(), [below, turned, number], indices.shape, DType.FLOAT32)
    whole = op.emit(ops.Cast(), [position], indices.shape, DType.INT32)
    stored, rank = value.stored(axis), len(indices.shape)
    shape = (*value.tensor.shape[:stored], *indices.shape, *value.tensor.shape[stored + 1 :])
    tensor = op.emit(ops.Gather(stored), [value.tensor, whole], shape, quantization=value.tensor.quantization)
    return value.moved(tensor, order_with(value.order, axis, rank))


OPERATORS: Mapping[str, Converter] = {
    "Gather": _gather,
}
