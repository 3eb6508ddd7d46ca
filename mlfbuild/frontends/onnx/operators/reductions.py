"""ReduceMean and Softmax."""

from __future__ import annotations

import math

from mlfbuild.frontends.onnx.layout import Order, Value, as_onnx
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import ops


def _reduce_mean(site: Site) -> tuple[Value, ...]:
    value = site.value(0)
    axes = site.integers("axes", 1 if site.opset >= 18 else None)
    if not axes:
        if site.integer("noop_with_empty_axes", 0):
            return (value,)
        axes = tuple(range(value.rank))
    reduced = site.axes(axes, value.rank)
    keep = site.integer("keepdims", 1) != 0
    operator = ops.Mean(tuple(sorted(value.stored(axis) for axis in reduced)), keep_dims=keep)
    made = site.emit(operator, [value.tensor], operator.output_shape(value.tensor.shape))
    return (Value(made, value.order if keep else without(value.order, reduced)),)


def without(order: Order, axes: tuple[int, ...]) -> Order:
    """Return ``order`` after the dimensions ``axes`` are gone and those behind them have moved up."""
    kept = [axis for axis in order if axis not in axes]
    return tuple(sorted(kept).index(axis) for axis in kept)


def _softmax(site: Site) -> tuple[Value, ...]:
    value = site.value(0)
    if site.opset < 13:
        return _softmax_of_rows(site, value)
    axis = site.axis(site.integer("axis", -1), value.rank)
    order = value.order
    if order[-1] != axis:
        order = (*(other for other in as_onnx(value.rank) if other != axis), axis)
    source = site.builder.stored(value, order)
    return (Value(site.emit(ops.Softmax(1.0), [source], source.shape), order),)


def _softmax_of_rows(site: Site, value: Value) -> tuple[Value, ...]:
    """Before version 13 all dimensions from ``axis`` on were one row."""
    source = site.tensor(0)
    axis = site.axis(site.integer("axis", 1), value.rank)
    shape = (math.prod(source.shape[:axis]), math.prod(source.shape[axis:]))
    rows = site.builder.reshaped(source, shape)
    return (site.made(site.builder.reshaped(site.emit(ops.Softmax(1.0), [rows], shape), source.shape)),)


OPERATORS = {"ReduceMean": _reduce_mean, "Softmax": _softmax}
