"""Operators that take elements one by one, with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlfbuild.frontends.onnx.layout import Order, Value, as_onnx, channels_last
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import Array, GraphError, Operator, Tensor, ops


def _binary(operator: Operator) -> Callable[[Site], tuple[Value, ...]]:
    def convert(site: Site) -> tuple[Value, ...]:
        return (_combined(site, operator, site.value(0), site.value(1)),)

    return convert


def _variadic(operator: Operator) -> Callable[[Site], tuple[Value, ...]]:
    """Combine any number of inputs from the first on."""

    def convert(site: Site) -> tuple[Value, ...]:
        result = site.value(0)
        for index in range(1, len(site.node.inputs)):
            result = _combined(site, operator, result, site.value(index))
        return (result,)

    return convert


def _combined(site: Site, operator: Operator, *values: Value) -> Value:
    """Apply ``operator`` to two values, stored in the order of the one that would have to be moved otherwise."""
    rank = max(value.rank for value in values)
    orders = [value.order for value in values if value.rank == rank and not value.tensor.constant]
    order = next((order for order in orders if order != as_onnx(rank)), as_onnx(rank))
    first, second = (_widened(site, value, rank, order) for value in values)
    try:
        shape = np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise GraphError(site.node.place, f"{first} and {second} do not broadcast") from None
    return Value(site.emit(operator, [first, second], shape), order)


def _widened(site: Site, value: Value, rank: int, order: Order) -> Tensor:
    """Return ``value`` with ``rank`` dimensions, sizes of 1 in front, stored in ``order``."""
    missing = rank - value.rank
    if missing:
        tensor = site.builder.reshaped(value.tensor, (*(1,) * missing, *value.tensor.shape))
        value = Value(tensor, (*range(missing), *(axis + missing for axis in value.order)))
    return site.builder.stored(value, order)


def _batch_normalization(site: Site) -> tuple[Value, ...]:
    """Scale and shift every channel: y = (x - mean) / sqrt(variance + epsilon) * scale + bias."""
    if site.integer("training_mode", 0) or any(site.node.outputs[1:]):
        raise site.unsupported("training_mode")
    value = site.value(0)
    scale, bias, mean, variance = (
        site.constant(index, what).astype(np.float64)
        for index, what in enumerate(("scale", "bias", "mean", "variance"), start=1)
    )
    factor = scale / np.sqrt(variance + site.number("epsilon", 1e-5))
    order = channels_last(value.rank)
    source = site.builder.stored(value, order)
    if value.rank < 2 or any(array.shape != source.shape[-1:] for array in (scale, bias, mean, variance)):
        raise GraphError(site.node.place, f"has {scale.size} scales for {source}")
    scaled = site.emit(ops.Mul(), [source, _floats(site, "scale", factor)], source.shape)
    shifted = site.emit(ops.Add(), [scaled, _floats(site, "offset", bias - mean * factor)], source.shape)
    return (Value(shifted, order),)


def _floats(site: Site, word: str, values: Array) -> Tensor:
    return site.weights(word, values.astype(np.float32))


OPERATORS = {
    "Add": _binary(ops.Add()),
    "BatchNormalization": _batch_normalization,
    "Div": _binary(ops.Div()),
    "Max": _variadic(ops.Maximum()),
    "Min": _variadic(ops.Minimum()),
    "Mul": _binary(ops.Mul()),
    "Sub": _binary(ops.Sub()),
    "Sum": _variadic(ops.Add()),
}
