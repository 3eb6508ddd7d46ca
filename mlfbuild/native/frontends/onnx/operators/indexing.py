"""Gather, Slice, OneHot, EyeLike, Where and Trilu: elements that positions or conditions select."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion import runtime_parameters
from mlfbuild.native.frontends.onnx.conversion.elementwise import aligned, chosen, compared
from mlfbuild.native.frontends.onnx.conversion.selection import check_indices, order_with, sliced, taken
from mlfbuild.native.frontends.onnx.layout import Value, as_onnx
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.frontends.onnx.raw_graph import ELEMENT_TYPES
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops

_NAMES = ("starts", "ends", "axes", "steps")
"""The inputs after the first one."""


def _slice(op: OpContext) -> tuple[Value, ...]:
    value = op.held(0)
    inputs = op.opset >= 10
    unknown = [index for index in range(1, 5) if inputs and op.has(index) and not op.is_constant(index)]
    made = op.declared(unknown[0], _NAMES[unknown[0] - 1], value.rank) if unknown else None
    # Ends that are not known follow from the declared shape of the result.
    op.not_read(2)
    if made is not None and unknown != [2]:
        return (_computed(op, value, made),)
    starts = op.integers("starts", 1 if inputs else None) or ()
    ends = None if unknown else op.integers("ends", 2 if inputs else None) or ()
    axes = op.integers("axes", 3 if inputs else None)
    steps = (op.integers("steps", 4) if inputs else None) or (1,) * len(starts)
    axes = op.axes_in_order(tuple(range(len(starts))) if axes is None else axes, value.rank)
    counts = {len(found) for found in (starts, ends, axes, steps) if found is not None}
    if len(counts) > 1 or 0 in steps:
        raise GraphError(op.node.place, f"has starts {starts}, ends {ends}, axes {axes} and steps {steps}")
    positions = [range(size) for size in value.shape]
    for index, (axis, start, step) in enumerate(zip(axes, starts, steps, strict=True)):
        positions[axis] = positions[axis][start : None if ends is None else ends[index] : step]
        if ends is None and made is not None:  # which determines the ends
            positions[axis] = positions[axis][: made[axis]]
    if made is not None and made != tuple(map(len, positions)):
        raise GraphError(op.node.place, f"cannot select {list(made)} of {value.tensor}")
    return (sliced(op, value, positions),)


def _computed(op: OpContext, value: Value, made: tuple[int, ...]) -> Value:
    """Walk along each dimension from a computed start, as far as the shape ``made`` requires."""
    starts = runtime_parameters.integers(op, 1)
    begins = runtime_parameters.of_dimensions(op, starts, 3, value.rank, 0)
    steps: list[Tensor | None] = [None] * value.rank
    known = set(op.integers("steps", 4) or ()) if op.is_constant(4) else set()
    if 0 in known:
        raise GraphError(op.node.place, "has a step of 0")
    if op.has(4) and known != {1}:
        steps = runtime_parameters.of_dimensions(
            op, runtime_parameters.integers(op, 4, starts.elements), 3, value.rank, 1
        )
    for axis, (begin, step) in enumerate(zip(begins, steps, strict=True)):
        size, wanted = value.shape[axis], made[axis]
        if (begin is None and wanted != size) or (step is None and wanted > size):
            raise GraphError(op.node.place, f"cannot select {wanted} of {size} elements of dimension {axis}")
        if begin is None or (step is None and wanted == size):
            continue
        first = runtime_parameters.bounded(op, runtime_parameters.from_front(op, begin, size), 0, size - 1)
        walked = runtime_parameters.places(op, wanted)
        walked = walked if step is None else op.multiply(walked, step)
        value = runtime_parameters.taken_at(op, value, axis, op.add(walked, first))
    return value


def _one_hot(op: OpContext) -> tuple[Value, ...]:
    """Write one value at the index and another one elsewhere; negative indices count from the end."""
    indices, values = op.tensor(0), op.tensor(2)
    depth = op.constant_integer(1, "depth")
    if depth < 1 or values.elements != 2:
        raise GraphError(op.node.place, f"has the depth {depth} and {values.elements} values")
    rank = len(indices.shape) + 1
    axis = op.axis(op.integer("axis", -1), rank)
    checked(op.name, (*indices.shape, depth), DType.INT64)  # before an array of that size is allocated
    whole = op.emit(ops.Cast(), [indices], indices.shape, DType.INT32)
    column = op.builder.reshaped(whole, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    op.check_room((depth,), DType.INT32.size)
    places = np.arange(depth, dtype=np.int32).reshape([depth if other == axis else 1 for other in range(rank)])
    hit = op.relation(ops.Equal(), column, op.weights("places", places))
    # Only signed indices can count from the end.
    if indices.dtype not in {DType.UINT8, DType.BOOL}:
        from_end = op.relation(ops.Equal(), column, op.weights("places", places - np.int32(depth)))
        hit = op.binary(ops.LogicalOr(), hit, from_end)
    off, on = (_one_of_two(op, values, index) for index in range(2))
    return (op.made(op.emit(ops.SelectV2(), [hit, on, off], hit.shape, on.dtype)),)


def _one_of_two(op: OpContext, values: Tensor, index: int) -> Tensor:
    if values.data is not None:
        return op.weights(("off", "on")[index], values.data.reshape(-1)[index])
    return op.builder.reshaped(runtime_parameters.element(op, op.builder.reshaped(values, (2,)), index), ())


def _eye_like(op: OpContext) -> tuple[Value, ...]:
    """Return a constant matrix of the input's shape with 1 on a diagonal and 0 elsewhere."""
    value = op.held(0)
    if value.rank != 2:
        raise GraphError(op.node.place, f"takes a matrix, not {value.tensor}")
    code = op.integer("dtype", 0)
    if code and code not in ELEMENT_TYPES:
        raise op.unsupported(
            f"dtype {code} is not supported", "use another type, such as FLOAT or INT8", code="type-unsupported"
        )
    dtype = ELEMENT_TYPES[code] if code else value.dtype
    rows, columns = value.shape
    op.check_room(value.shape, dtype.size)
    diagonal = np.eye(rows, columns, k=op.integer("k", 0), dtype=dtype.numpy)
    return (op.made(op.weights("diagonal", diagonal)),)


def _where(op: OpContext) -> tuple[Value, ...]:
    """Select elements of X where the condition is true, else of Y."""
    chosen_integers = _integers(op)
    if chosen_integers is not None:
        return (chosen_integers,)
    condition, first, second = (op.value(index) for index in range(3))
    return (chosen(op, condition, first, second),)


def _integers(op: OpContext) -> Value | None:
    """Select quantised elements, which are first converted to the scale of the output; ``None`` if there is none."""
    target, values = op.held_target, [op.held(1), op.held(2)]
    if target is None or op.target is None or any(value.quantization is None for value in values):
        return None
    brought = [op.brought_to(value.tensor, target, op.target.holder) for value in values]
    if None in brought:
        return None
    first, second = (
        value.moved(tensor, value.order) for value, tensor in zip(values, brought, strict=True) if tensor is not None
    )
    order, tensors, shape = aligned(op, (op.value(0), first, second))
    return op.real(op.emit(ops.SelectV2(), tensors, shape, tensors[1].dtype, target), order)


def _trilu(op: OpContext) -> tuple[Value, ...]:
    """Keep the elements above (or below) a diagonal of the last two dimensions and set the others to 0."""
    value = op.value(0)
    if value.rank < 2:
        raise GraphError(op.node.place, f"takes matrices, not {value.tensor}")
    op.check_room(value.shape[-2:], np.dtype(np.int64).itemsize)
    rows, columns = np.arange(value.shape[-2])[:, np.newaxis], np.arange(value.shape[-1])
    upper = op.integer("upper", 1) != 0
    if op.has(1) and not op.is_constant(1):
        kept = _beside(op, op.value(1), columns - rows, upper)
    else:
        diagonal = op.constant_integer(1, "diagonal") if op.has(1) else 0
        mask = columns - rows >= diagonal if upper else columns - rows <= diagonal
        kept = Value(op.weights("mask", mask), as_onnx(2))
    zero = Value(op.weights("zero", np.zeros((), value.dtype.numpy)), ())
    return (chosen(op, kept, value, zero),)


def _beside(op: OpContext, diagonal: Value, distances: Array, upper: bool) -> Value:
    """Return which elements, at ``distances`` from the main diagonal, are kept with the computed ``diagonal``."""
    if diagonal.dtype is not DType.INT64 or diagonal.tensor.elements != 1 or diagonal.rank > 1:
        raise GraphError(op.node.place, f"the diagonal {diagonal.tensor} is not one int64")
    places = Value(op.weights("distances", distances.astype(np.int64)), as_onnx(2))
    return compared(op, ops.GreaterEqual() if upper else ops.LessEqual(), places, diagonal)


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
    # The remainder is never negative in numpy: positions that count from the end become those from the front.
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
    "EyeLike": _eye_like,
    "Gather": _gather,
    "OneHot": _one_hot,
    "Slice": _slice,
    "Trilu": _trilu,
    "Where": _where,
}
