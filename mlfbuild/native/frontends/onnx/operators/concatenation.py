"""Concat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlfbuild.native.frontends.onnx.layout import Order, Value, as_onnx
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import GraphError, Quantization, Tensor, ops


def common_order(values: Sequence[Value]) -> Order:
    """Return the first order other than ONNX's among ``values``, constants excluded; ONNX's if there is none."""
    onnx = as_onnx(values[0].rank)
    orders = [value.order for value in values if not value.tensor.constant]
    return next((order for order in orders if order != onnx), onnx)


def _concat(site: OnnxSite) -> tuple[Value, ...]:
    values = [site.held(index) for index in range(len(site.node.inputs))]
    if len(values) == 1:
        site.axis(site.integer("axis", 1), values[0].rank)
        return (values[0],)
    if len({value.rank for value in values}) > 1:
        raise GraphError(site.node.place, "takes tensors of one rank")
    quantization = _common_quantization(site, values)
    if quantization is None:
        values = [site.builder.plain(value) for value in values]
    order = common_order(values)
    tensors = [site.builder.stored(value, order) for value in values]
    if quantization is not None:
        dtype = site.target.holder if site.target is not None else next(t.dtype for t in tensors if t.quantization)
        brought = [site.brought_to(tensor, quantization, dtype) for tensor in tensors]
        if None in brought:
            return _concat_real(site, values, order)
        tensors = [tensor for tensor in brought if tensor is not None]
    return (values[0].moved(_joined(site, tensors, order), order),)


def _concat_real(site: OnnxSite, values: Sequence[Value], order: Order) -> tuple[Value, ...]:
    tensors = [site.builder.stored(site.builder.plain(value), order) for value in values]
    return (site.made(_joined(site, tensors, order), order),)


def _joined(site: OnnxSite, tensors: Sequence[Tensor], order: Order) -> Tensor:
    axis = order.index(site.axis(site.integer("axis", 1), len(order)))
    shape = list(tensors[0].shape)
    shape[axis] = sum(tensor.shape[axis] for tensor in tensors)
    return site.emit(ops.Concatenation(axis), tensors, shape, quantization=tensors[0].quantization)


def _common_quantization(site: OnnxSite, values: Sequence[Value]) -> Quantization | None:
    """Return the quantisation with which float32 values are joined as int8, ``None`` to join them unchanged."""
    if all(value.quantization is None for value in values):
        return None
    if site.held_target is not None:
        return site.held_target
    first = values[0].quantization
    return first if all(value.quantization == first for value in values) else None


OPERATORS: Mapping[str, Converter] = {
    "Concat": _concat,
}
