"""Elements at constant positions of a tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Order, Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, GraphError, ops


def sliced(op: OpContext, value: Value, positions: Sequence[range]) -> Value:
    """Return the elements at ``positions`` of each of ONNX's dimensions.

    ``positions`` are ranges along ONNX's dimensions, in ONNX's order, and may count down. Raises
    ``UnsupportedModelError`` if the result would have no elements.
    """
    if all(found == range(size) for found, size in zip(positions, value.shape, strict=True)):
        return value
    # The stored order of dimensions need not be ONNX's, so that the positions are put into it.
    stored = [positions[axis] for axis in value.order]
    shape = [len(found) for found in stored]
    if 0 in shape:
        raise op.unsupported("the result has no elements", code="tensor-empty")
    operator = ops.StridedSlice(tuple(ops.Steps.of(found) for found in stored))
    return value.moved(op.moved(operator, value.tensor, shape), value.order)


def taken(op: OpContext, value: Value, axis: int, positions: Array) -> Value:
    """Return ``value`` with the elements at the constant ``positions`` (0 or more) of its dimension ``axis``."""
    stored = value.stored(axis)
    indices = op.weights("positions", positions.astype(np.int32))
    shape = list(value.tensor.shape)
    shape[stored : stored + 1] = positions.shape
    operator = ops.Gather(stored)
    tensor = op.emit(operator, [value.tensor, indices], shape, quantization=value.tensor.quantization)
    # The new dimensions take the place of ``axis``, and later dimensions move up.
    return value.moved(tensor, order_with(value.order, axis, positions.ndim))


def order_with(order: Order, axis: int, rank: int) -> Order:
    """Return ``order`` after ``axis`` was replaced by ``rank`` dimensions."""
    new: list[int] = []
    for other in order:
        new.extend(range(axis, axis + rank) if other == axis else [other if other < axis else other + rank - 1])
    return tuple(new)


def check_indices(op: OpContext, dtype: str) -> None:
    """Raise ``GraphError`` unless ``dtype`` is a type of indices."""
    if dtype not in {"int32", "int64"}:
        raise GraphError(op.node.place, f"the indices are {dtype}, not int32 or int64")


def all_places(op: OpContext, shape: Sequence[int]) -> Array:
    """Return the flat position of each element of a tensor of ``shape``."""
    op.check_room(shape, np.dtype(np.int64).itemsize)
    return np.arange(math.prod(shape)).reshape(shape)


def picked(op: OpContext, value: Value, places: Array) -> Value:
    """Return the elements of ``value``, in ONNX's order, at the constant flat positions ``places``.

    ``places`` has the shape of the result, and positions in the row-major order of ``value``.
    """
    if places.size == 0:
        raise op.unsupported("the result has no elements", code="tensor-empty")
    row = value.moved(op.builder.reshaped(value.tensor, (value.tensor.elements,)))
    return taken(op, row, 0, places)
