"""Softmax and LogSoftmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from mlfbuild.native.frontends.onnx.layout import Order, Value, as_onnx
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    subtract,
    unary,
)
from mlfbuild.native.frontends.onnx.operators.reduce import log_of_sum_of_exponentials
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, Quantization, Tensor, ops

_SHARES = Quantization((1 / 256,), (-128,))
"""The quantisation of SOFTMAX's int8 output."""


def _softmax(site: OnnxSite) -> tuple[Value, ...]:
    held, target = site.held(0), site.held_target
    int8 = held.quantization is not None and held.tensor.dtype is DType.INT8
    if int8 and target is not None and target.scale >= _SHARES.scale:
        source, back = _rows(site, held)
        made = site.attempt(ops.Softmax(1.0), [source], source.shape, _SHARES)
        if made is not None:
            return (back(made),)
    return along_rows(lambda site, rows: unary(site, ops.Softmax(1.0), rows))(site)


def _log_softmax(site: OnnxSite, rows: Tensor) -> Tensor:
    return subtract(site, rows, log_of_sum_of_exponentials(site, rows, (len(rows.shape) - 1,)))


def along_rows(compute: Callable[[OnnxSite, Tensor], Tensor]) -> Callable[[OnnxSite], tuple[Value, ...]]:
    """Return a converter that applies ``compute`` to rows along the last dimension."""

    def convert(site: OnnxSite) -> tuple[Value, ...]:
        source, back = _rows(site, site.value(0))
        return (back(compute(site, source)),)

    return convert


def _rows(site: OnnxSite, value: Value) -> tuple[Tensor, Callable[[Tensor], Value]]:
    """Return ``value`` with its rows along the last dimension, and a function that converts a result back.

    Before opset 13, all dimensions from ``axis`` on are one row.
    """
    if site.integer("opset", site.opset) >= 13:  # an attribute of QLinearSoftmax
        axis = site.axis(site.integer("axis", -1), value.rank)
        order = value.order if value.order[-1] == axis else _last(value.rank, axis)
        return site.builder.stored(value, order), lambda made: site.real(made, order)
    axis = site.axis(site.integer("axis", 1), value.rank)
    source = site.builder.stored(value, as_onnx(value.rank))
    rows = site.builder.reshaped(source, (math.prod(source.shape[:axis]), math.prod(source.shape[axis:])))
    return rows, lambda made: site.real(site.builder.reshaped(made, source.shape))


def _last(rank: int, axis: int) -> Order:
    return (*(other for other in as_onnx(rank) if other != axis), axis)


OPERATORS: Mapping[str, Converter] = {
    "LogSoftmax": along_rows(_log_softmax),
    "Softmax": _softmax,
}
