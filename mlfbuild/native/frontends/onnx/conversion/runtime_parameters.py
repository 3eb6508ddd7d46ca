"""Parameters that the network computes in every run: positions along a dimension, as int64 tensors.

The shape of the result is the one that the file declares. A parameter that contradicts it selects other elements of
the tensor, never memory outside of it: a position out of range is replaced by the nearest valid one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, GraphError, Tensor, ops


def integers(op: OpContext, index: int, count: int | None = None) -> Tensor:
    """Return the integers in input ``index`` as an int64 tensor with one dimension, of ``count`` elements if given."""
    tensor = op.tensor(index)
    # The count is part of the file, so that a wrong one is a mistake in it.
    if tensor.dtype not in {DType.INT32, DType.INT64} or (count is not None and tensor.elements != count):
        wanted = "integers" if count is None else f"{count} integers"
        raise GraphError(op.node.place, f"input {index}, {tensor}, is not {wanted}")
    return op.cast(op.builder.reshaped(tensor, (tensor.elements,)), DType.INT64)


def element(op: OpContext, tensor: Tensor, index: int) -> Tensor:
    """Return element ``index`` of a ``tensor`` with one dimension, as a tensor of one element."""
    return op.moved(ops.StridedSlice((ops.Steps.of(range(index, index + 1)),)), tensor, (1,))


def of_dimensions(op: OpContext, values: Tensor, axes: int, rank: int, default: int) -> list[Tensor | None]:
    """Return one of ``values`` for each of ``rank`` dimensions, which input ``axes`` names; all if it is absent.

    ``None`` stands for a dimension that constant axes do not name; computed ones leave ``default`` there.

    ``values`` has one dimension. The result has ``rank`` entries of one element each.
    """
    if op.has(axes) and not op.is_constant(axes):
        named = from_front(op, integers(op, axes, values.elements), rank)
        blank = op.filled("default", (rank,), default, np.int64)
        # Scattered into a list of all dimensions, because the axes are known only at run time.
        spread = op.emit(ops.ScatterElements(), [blank, op.cast(named, DType.INT32), values], (rank,))
        return [element(op, spread, axis) for axis in range(rank)]
    order = op.axes_in_order(op.integers("axes", axes) or () if op.has(axes) else range(values.elements), rank)
    if len(order) != values.elements:
        raise GraphError(op.node.place, f"{values.elements} numbers for {len(order)} dimensions")
    return [element(op, values, order.index(axis)) if axis in order else None for axis in range(rank)]


def from_front(op: OpContext, indices: Tensor, size: int) -> Tensor:
    """Return ``indices``, negative ones of which count from the end of ``size``, counted from the front."""
    return op.select(op.relation(ops.Less(), indices, 0), op.add(indices, size), indices)


def bounded(op: OpContext, numbers: Tensor, least: Tensor | int, greatest: Tensor | int) -> Tensor:
    """Return ``numbers`` brought into a range."""
    return op.binary(ops.Minimum(), op.binary(ops.Maximum(), numbers, least), greatest)


def places(op: OpContext, count: int) -> Tensor:
    """Return the numbers 0 to ``count`` - 1."""
    op.check_room((count,), DType.INT64.size)
    return op.weights("places", np.arange(count, dtype=np.int64))


def taken_at(op: OpContext, value: Value, axis: int, positions: Tensor) -> Value:
    """Return ``value`` with the elements at the computed ``positions``, in one dimension, of its dimension ``axis``."""
    stored, shape = value.stored(axis), list(value.tensor.shape)
    # Clamped at run time: a computed position must never read outside of the tensor.
    valid = bounded(op, positions, 0, shape[stored] - 1)  # also if they turn out to be constant
    shape[stored] = positions.elements
    made = op.emit(ops.Gather(stored), [value.tensor, valid], shape, quantization=value.tensor.quantization)
    return value.moved(made, value.order)


def along(value: Value, axis: int, tensor: Tensor) -> Sequence[int]:
    """Return the shape in which a ``tensor`` of one dimension broadcasts along ``axis`` of ``value``."""
    return [tensor.elements if stored == value.stored(axis) else 1 for stored in range(value.rank)]
