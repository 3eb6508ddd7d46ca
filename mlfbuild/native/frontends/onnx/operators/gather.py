"""Gather."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Order, Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.slice import sliced
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, DType, GraphError, ops


def taken(site: OnnxSite, value: Value, axis: int, positions: Array) -> Value:
    """Return ``value`` with the elements at the constant ``positions`` (0 or more) of its dimension ``axis``."""
    stored = value.stored(axis)
    indices = site.weights("positions", positions.astype(np.int32))
    shape = list(value.tensor.shape)
    shape[stored : stored + 1] = positions.shape
    operator = ops.Gather(stored)
    tensor = site.emit(operator, [value.tensor, indices], shape, quantization=value.tensor.quantization)
    return value.moved(tensor, _order_with(value.order, axis, positions.ndim))


def _order_with(order: Order, axis: int, rank: int) -> Order:
    """Return ``order`` after ``axis`` was replaced by ``rank`` dimensions."""
    new: list[int] = []
    for other in order:
        new.extend(range(axis, axis + rank) if other == axis else [other if other < axis else other + rank - 1])
    return tuple(new)


def _gather(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held(0)
    axis = site.axis(site.integer("axis", 0), value.rank)
    size = value.shape[axis]
    if not site.is_constant(1):
        return (_looked_up(site, value, axis),)
    positions = site.constant(1, "indices")
    check_indices(site, positions.dtype.name)
    if positions.size and not -size <= positions.min() <= positions.max() < size:
        raise GraphError(site.node.place, f"picks positions that are not in dimension {axis} of {value.tensor}")
    positions = positions % size
    if positions.ndim == 0:
        return (_picked(site, value, axis, int(positions)),)
    return (taken(site, value, axis, positions),)


def check_indices(site: OnnxSite, dtype: str) -> None:
    """Raise ``GraphError`` unless ``dtype`` is a type of indices."""
    if dtype not in {"int32", "int64"}:
        raise GraphError(site.node.place, f"the indices are {dtype}, not int32 or int64")


def _picked(site: OnnxSite, value: Value, axis: int, position: int) -> Value:
    ranges = [range(position, position + 1) if other == axis else range(size) for other, size in enumerate(value.shape)]
    part = sliced(site, value, ranges)
    kept = [other for other in part.order if other != axis]
    shape = [part.shape[other] for other in kept]
    return value.moved(site.builder.reshaped(part.tensor, shape), _order_with(part.order, axis, 0))


def _looked_up(site: OnnxSite, value: Value, axis: int) -> Value:
    """Gather by computed positions; negative ones count from the end, which GATHER does not support."""
    indices, size = site.tensor(1), value.shape[axis]
    check_indices(site, indices.dtype.value)
    number = site.emit(ops.Cast(), [indices], indices.shape, DType.FLOAT32)
    zero = site.weights("zero", np.array(0, indices.dtype.numpy))
    below = site.emit(ops.Less(), [indices, zero], indices.shape, DType.BOOL)
    turned = site.emit(ops.Add(), [number, site.number("size", size)], indices.shape)
    position = site.emit(ops.SelectV2(), [below, turned, number], indices.shape, DType.FLOAT32)
    whole = site.emit(ops.Cast(), [position], indices.shape, DType.INT32)
    stored, rank = value.stored(axis), len(indices.shape)
    shape = (*value.tensor.shape[:stored], *indices.shape, *value.tensor.shape[stored + 1 :])
    tensor = site.emit(ops.Gather(stored), [value.tensor, whole], shape, quantization=value.tensor.quantization)
    return value.moved(tensor, _order_with(value.order, axis, rank))


OPERATORS: Mapping[str, Converter] = {
    "Gather": _gather,
}
