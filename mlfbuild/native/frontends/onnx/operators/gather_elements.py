"""GatherElements, GatherND, Compress, NonZero, ReverseSequence and the scattering operators.

All of them become a GATHER on the tensor as a flat list of elements, or a SCATTER_ELEMENTS if they scatter at computed
positions. The flat positions are constant if the indices are; otherwise they are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion import runtime_parameters
from mlfbuild.native.frontends.onnx.conversion.elementwise import NARROW
from mlfbuild.native.frontends.onnx.conversion.selection import all_places, check_indices, picked, sliced, taken
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Operator, Tensor, ops

_EXACT = 1 << 24
"""float32 represents integers up to this exactly."""


def from_front(op: OpContext, indices: Tensor, size: int) -> Tensor:
    """Return computed ``indices`` as float32; negative ones, which count from the end of ``size``, become positive."""
    check_indices(op, indices.dtype.value)
    number = op.emit(ops.Cast(), [indices], indices.shape, DType.FLOAT32)
    below = op.emit(ops.Less(), [number, op.number("zero", 0)], indices.shape, DType.BOOL)
    turned = op.add(number, size)
    return op.emit(ops.SelectV2(), [below, turned, number], indices.shape, DType.FLOAT32)


def _picked_by_computed(op: OpContext, value: Value, places: Tensor) -> Value:
    """Return the elements of ``value``, in ONNX's order, at the flat positions ``places``, which are float32."""
    # The positions were computed in float32, exactly, since there are at most ``_EXACT``.
    whole = _whole(op, value, places)
    row = op.builder.reshaped(value.tensor, (value.tensor.elements,))
    return value.moved(op.emit(ops.Gather(0), [row, whole], whole.shape, quantization=row.quantization))


def _whole(op: OpContext, value: Value, places: Tensor) -> Tensor:
    """Return flat positions in ``value``, which were computed in float32, as int32."""
    if value.tensor.elements > _EXACT:
        raise op.unsupported(
            f"computed indices into more than {_EXACT} elements are not supported", "make the indices constant"
        )
    return op.emit(ops.Cast(), [places], places.shape, DType.INT32)


def _checked(op: OpContext, indices: Array, sizes: tuple[int, ...]) -> Array:
    """Return constant ``indices`` counted from the front; their last dimension corresponds to ``sizes``."""
    limits = np.array(sizes, np.int64)
    check_indices(op, indices.dtype.name)
    if ((indices < -limits) | (indices >= limits)).any():
        raise GraphError(op.node.place, f"has indices that are not in dimensions of {list(sizes)}")
    return np.where(indices < 0, indices + limits, indices)


def _gather_elements(op: OpContext) -> tuple[Value, ...]:
    value = op.held_in_order(0)
    axis = op.axis(op.integer("axis", 0), value.rank)
    size = value.shape[axis]
    if op.is_constant(1):
        indices = _checked(op, op.constant(1, "indices")[..., np.newaxis], (size,))[..., 0]
        _check_within(op, indices.shape, value.shape, axis)
        return (picked(op, value, np.take_along_axis(_cut(op, value, indices.shape, axis), indices, axis)),)
    return (_picked_by_computed(op, value, _places_along(op, value, axis)),)


def _places_along(op: OpContext, value: Value, axis: int) -> Tensor:
    """Return the flat positions in ``value``, as float32, that computed indices (input 1) along ``axis`` select."""
    wanted = op.tensor(1)
    _check_within(op, wanted.shape, value.shape, axis)
    step = math.prod(value.shape[axis + 1 :])
    first = np.take(_cut(op, value, wanted.shape, axis), [0], axis=axis)
    along = op.multiply(from_front(op, wanted, value.shape[axis]), step)
    return op.add(along, op.weights("places", first.astype(np.float32)))


def _check_within(op: OpContext, shape: tuple[int, ...], limits: tuple[int, ...], axis: int) -> None:
    """Raise ``GraphError`` if ``shape`` exceeds ``limits`` in a dimension other than ``axis``."""
    fits = len(shape) == len(limits) and all(
        size <= limit for other, (size, limit) in enumerate(zip(shape, limits, strict=True)) if other != axis
    )
    if not fits:
        raise GraphError(op.node.place, f"indices {list(shape)} do not fit a tensor {list(limits)}")


def _cut(op: OpContext, value: Value, shape: tuple[int, ...], axis: int) -> Array:
    """Return the flat positions of ``value``, cut to ``shape`` in all dimensions except ``axis``."""
    cut = tuple(slice(None) if other == axis else slice(size) for other, size in enumerate(shape))
    return all_places(op, value.shape)[cut]


def _gather_nd(op: OpContext) -> tuple[Value, ...]:
    value, batch = op.held_in_order(0), op.integer("batch_dims", 0)
    shape = op.constant_shape(1) or op.held(1).shape
    depth = shape[-1] if shape else 0
    if not 0 <= batch < len(shape) or not 1 <= depth <= value.rank - batch or shape[:batch] != value.shape[:batch]:
        raise GraphError(op.node.place, f"indices {list(shape)} do not fit {value.tensor}")
    sizes = value.shape[batch : batch + depth]
    if op.is_constant(1):
        indices = _checked(op, op.constant(1, "indices"), sizes)
        return (picked(op, value, places_of(op, value.shape, indices, batch)),)
    return (_looked_up(op, value, op.value(1), sizes, batch),)


def places_of(op: OpContext, shape: tuple[int, ...], indices: Array, batch: int = 0) -> Array:
    """Return the flat positions in a tensor of ``shape`` that ``indices`` select in GatherND and ScatterND.

    ``indices`` count from the front; their last dimension has one position for each leading dimension after ``batch``.
    """
    # Each leading position is spread over the dimensions that the indices have beyond the batch.
    leading = np.ogrid[tuple(slice(size) for size in indices.shape[:batch])] if batch else ()
    spread = [index.reshape(*index.shape, *(1 for _ in indices.shape[batch:-1])) for index in leading]
    picked_from = (*spread, *np.moveaxis(indices, -1, 0))
    found: Array = all_places(op, shape)[picked_from]
    return found


def _looked_up(op: OpContext, value: Value, indices: Value, sizes: tuple[int, ...], batch: int) -> Value:
    """Convert GatherND with computed indices."""
    rest = value.shape[batch + len(sizes) :]
    places = _places_of_slices(op, value, indices, sizes, batch)
    if batch:
        # The position of each batch's first element, added to positions within it.
        begins = all_places(op, value.shape)[(slice(None),) * batch + (0,) * (value.rank - batch)]
        spread = (*begins.shape, *(1 for _ in indices.shape[batch:]))
        places = op.add(places, op.weights("batches", begins.reshape(spread).astype(np.float32)))
    found = _picked_by_computed(op, value, places)
    return found.moved(op.builder.reshaped(found.tensor, (*indices.shape[:-1], *rest)))


def _places_of_slices(op: OpContext, value: Value, indices: Value, sizes: tuple[int, ...], batch: int = 0) -> Tensor:
    """Return the flat positions in a ``batch`` of ``value``, as float32, of the slices at ``indices``, one in a row.

    The computed indices are multiplied by the strides, and the offsets within a slice are added.
    """
    rest = value.shape[batch + len(sizes) :]

    def along(number: int) -> Tensor:
        # The column of one dimension is cut out of the indices.
        ranges = [*(range(size) for size in indices.shape[:-1]), range(number, number + 1)]
        part = op.builder.stored(sliced(op, indices, ranges), tuple(range(indices.rank)))
        return op.multiply(from_front(op, part, sizes[number]), math.prod((*sizes[number + 1 :], *rest)))

    total = op.summed(map(along, reversed(range(len(sizes)))))
    behind = all_places(op, (math.prod(rest),)).astype(np.float32)
    return op.add(total, op.weights("places", behind))


def _compress(op: OpContext) -> tuple[Value, ...]:
    """Keep the elements that a condition selects; their number must be known."""
    value = op.held_in_order(0)
    axis = None if "axis" not in op.node.attributes else op.axis(op.integer("axis", 0), value.rank)
    size = value.tensor.elements if axis is None else value.shape[axis]
    if not op.is_constant(1):
        return (_compressed_by_computed(op, value, axis),)
    kept = np.flatnonzero(op.constant(1, "condition"))
    if kept.size == 0:
        raise op.unsupported("the condition keeps no elements", code="tensor-empty")
    if kept[-1] >= size:
        raise GraphError(op.node.place, f"the condition keeps element {kept[-1]} of {size}")
    return (picked(op, value, kept),) if axis is None else (taken(op, value, axis, kept),)


def _compressed_by_computed(op: OpContext, value: Value, axis: int | None) -> Value:
    """Keep as many elements as the declared shape of the result has."""
    made = op.declared(1, "condition", 1 if axis is None else value.rank)
    condition = op.tensor(1)
    if axis is None:
        value, axis = value.moved(op.builder.reshaped(value.tensor, (value.tensor.elements,))), 0
    if condition.dtype is not DType.BOOL or condition.elements > value.shape[axis]:
        raise GraphError(op.node.place, f"the condition {condition} does not fit dimension {axis} of {value.tensor}")
    kept = runtime_parameters.taken_at(op, value, axis, _true_places(op, condition, made[axis]))
    if kept.shape != made:
        raise GraphError(op.node.place, f"cannot select {list(made)} of {value.tensor}")
    return kept


def _true_places(op: OpContext, condition: Tensor, count: int) -> Tensor:
    """Return the flat positions of the first ``count`` elements that are true; 0 instead of those that are missing."""
    row = op.builder.reshaped(condition, (condition.elements,))
    # An exclusive sum of ones: the rank of each true element among those before it.
    ranks = op.emit(ops.Cumsum(0, exclusive=True), [op.cast(row, DType.INT32)], row.shape)
    places = op.select(row, ranks, op.weights("nowhere", np.array(-1, np.int32)))
    # Each true element writes its own position at its rank among the true ones. The rank -1 of the others is dropped,
    # and so are ranks beyond ``count``.
    blank = op.filled("blank", (count,), 0, np.int64)
    return op.emit(ops.ScatterElements(), [blank, places, runtime_parameters.places(op, row.elements)], (count,))


def _non_zero(op: OpContext) -> tuple[Value, ...]:
    """Return the positions of as many elements as the declared shape has, one row for each dimension."""
    source = op.tensor(0)
    made = op.declared(0, "input", 2)
    rank = len(source.shape)
    if made[0] != rank or rank == 0 or source.elements > _EXACT:
        raise GraphError(op.node.place, f"cannot write {list(made)} positions in {source}")
    if source.dtype in NARROW:
        source = op.cast(source, DType.INT32)
    condition = source if source.dtype is DType.BOOL else op.relation(ops.NotEqual(), source, 0)
    places = _true_places(op, condition, made[1])
    row = op.cast(op.builder.reshaped(places, (1, made[1])), DType.INT32)
    # Row-major positions become one row per dimension: quotient by the stride, modulo the size.
    strides = [math.prod(source.shape[axis + 1 :]) for axis in range(rank)]
    columns = (np.array(numbers, np.int32)[:, np.newaxis] for numbers in (strides, source.shape))
    step, size = (op.weights("column", numbers) for numbers in columns)
    along = op.binary(ops.FloorMod(), op.binary(ops.FloorDiv(), row, step), size)
    return (op.made(op.cast(along, DType.INT64)),)


def _reverse_sequence(op: OpContext) -> tuple[Value, ...]:
    """Reverse the first elements of every sequence."""
    if op.has(1) and not op.is_constant(1):
        return (_reversed_by_computed(op, op.held_in_order(0), op.tensor(1)),)
    value, lengths = op.held_in_order(0), np.array(op.integers("sequence_lens", 1) or (), np.int64)
    time, batch = op.integer("time_axis", 0), op.integer("batch_axis", 1)
    if {time, batch} != {0, 1} or value.rank < 2 or lengths.shape != value.shape[batch : batch + 1]:
        raise GraphError(op.node.place, f"{lengths.size} sequences along {batch} and {time} do not fit {value.tensor}")
    if lengths.min() < 0 or lengths.max() > value.shape[time]:
        raise GraphError(op.node.place, f"has sequences that are longer than {value.shape[time]}")
    places = np.moveaxis(all_places(op, value.shape), batch, 0)
    turned = [
        np.concatenate([rows[:length][::-1], rows[length:]]) for rows, length in zip(places, lengths, strict=True)
    ]
    return (picked(op, value, np.moveaxis(np.stack(turned), 0, batch)),)


def _reversed_by_computed(op: OpContext, value: Value, lengths: Tensor) -> Value:
    """Reverse the first ``lengths[i]`` elements of sequence i.

    A length above the number of steps counts as all of them, one below 0 as 0.
    """
    time, batch = op.integer("time_axis", 0), op.integer("batch_axis", 1)
    if {time, batch} != {0, 1} or value.rank < 2 or lengths.shape != value.shape[batch : batch + 1]:
        raise GraphError(op.node.place, f"{lengths} along {batch} and {time} do not fit {value.tensor}")
    check_indices(op, lengths.dtype.value)
    steps, sequences = value.shape[time], value.shape[batch]
    count = op.emit(ops.Cast(), [lengths], lengths.shape, DType.FLOAT32)
    count = op.builder.reshaped(op.binary(ops.Minimum(), count, op.number("steps", steps)), (sequences, 1))
    at = op.weights("time", np.arange(steps, dtype=np.float32).reshape(1, steps))
    # count - 1 - time, which is negative behind the end of a sequence; such elements stay.
    mirrored = op.subtract(op.add(count, -1), at)
    outside = op.relation(ops.Less(), mirrored, 0)
    turned = op.emit(ops.SelectV2(), [outside, at, mirrored], (sequences, steps), DType.FLOAT32)
    strides = [math.prod(value.shape[axis + 1 :]) for axis in (time, batch)]
    begin = op.weights("sequence", np.arange(sequences, dtype=np.float32).reshape(sequences, 1) * strides[1])
    places = op.add(op.multiply(turned, strides[0]), begin)
    if batch == 1:
        places = op.moved(ops.Transpose((1, 0)), places, (steps, sequences))
    rest = value.shape[2:]
    behind = op.weights("places", all_places(op, rest).astype(np.float32))
    row = op.builder.reshaped(places, (*value.shape[:2], *(1 for _ in rest)))
    return _picked_by_computed(op, value, op.add(row, behind))


def _scatter_elements(op: OpContext) -> tuple[Value, ...]:
    value = op.held_in_order(0)
    axis = op.axis(op.integer("axis", 0), value.rank)
    if not op.is_constant(1):
        return (_scattered_by_computed(op, value, _places_along(op, value, axis), op.tensor(1).shape),)
    indices = op.constant(1, "indices")
    _check_within(op, indices.shape, value.shape, axis)
    indices = _checked(op, indices[..., np.newaxis], (value.shape[axis],))[..., 0]
    places = np.take_along_axis(_cut(op, value, indices.shape, axis), indices, axis)
    return (_scattered(op, value, places),)


def _scatter_nd(op: OpContext) -> tuple[Value, ...]:
    value = op.held_in_order(0)
    shape = op.constant_shape(1) or op.held(1).shape
    depth = shape[-1] if shape else 0
    if not 1 <= depth <= value.rank:
        raise GraphError(op.node.place, f"indices {list(shape)} do not fit {value.tensor}")
    if not op.is_constant(1):
        places = _places_of_slices(op, value, op.value(1), value.shape[:depth])
        return (_scattered_by_computed(op, value, places, (*shape[:-1], *value.shape[depth:])),)
    indices = op.constant(1, "indices")
    return (_scattered(op, value, places_of(op, value.shape, _checked(op, indices, value.shape[:depth]))),)


def _scattered_by_computed(op: OpContext, value: Value, places: Tensor, shape: tuple[int, ...]) -> Value:
    """Return ``value`` with the updates (input 2), which have ``shape``, at computed flat ``places``."""
    value, updates, reduction = op.builder.plain(value), op.value(2), op.text("reduction", "none")
    if updates.shape != shape or updates.dtype is not value.dtype:
        raise GraphError(op.node.place, f"updates {updates.tensor} do not fit {list(shape)} of {value.tensor}")
    if reduction not in {"none", *_COMBINING}:
        raise GraphError(op.node.place, f"attribute reduction is {reduction!r}")
    if reduction != "none" and value.dtype is not DType.FLOAT32:
        raise op.type_unsupported(value.tensor, f"float32 for the reduction {reduction!r}")
    whole = op.builder.reshaped(_whole(op, value, places), (places.elements,))
    row = op.builder.reshaped(op.builder.stored(updates, tuple(range(updates.rank))), (places.elements,))
    source = op.builder.reshaped(value.tensor, (value.tensor.elements,))
    operator = ops.ScatterElements(ops.ScatterUpdate("set" if reduction == "none" else reduction))
    made = op.emit(operator, [source, whole, row], source.shape)
    return op.made(op.builder.reshaped(made, value.shape))


def _scattered(op: OpContext, value: Value, places: Array) -> Value:
    """Return ``value`` with the updates (input 2) at constant ``places``; the last one wins, or they are combined."""
    # Constant places need no scatter: each element is selected from the tensor or from the updates.
    updates = op.value(2)
    value = op.builder.plain(value)
    if updates.shape != places.shape or updates.dtype is not value.dtype:
        raise GraphError(op.node.place, f"updates {updates.tensor} do not fit {list(places.shape)} of {value.tensor}")
    row = op.builder.reshaped(op.builder.stored(updates, tuple(range(updates.rank))), (places.size,))
    reduction = op.text("reduction", "none")
    if reduction == "none":
        return _overwritten(op, value, row, places.reshape(-1))
    if reduction not in _COMBINING:
        raise GraphError(op.node.place, f"attribute reduction is {reduction!r}")
    return _combined(op, value, row, places.reshape(-1), reduction)


def _overwritten(op: OpContext, value: Value, row: Tensor, places: Array) -> Value:
    """Select every element from the tensor, or from the updates that are appended to it."""
    source = op.builder.reshaped(value.tensor, (value.tensor.elements,))
    both = op.emit(ops.Concatenation(0), [source, row], (source.elements + row.elements,))
    origin = all_places(op, value.shape).reshape(-1)
    # If a place occurs twice, the last update wins; ONNX does not permit that without a reduction.
    origin[places] = source.elements + np.arange(places.size)
    return taken(op, op.made(both), 0, origin.reshape(value.shape))


_COMBINING: dict[str, tuple[Callable[[], Operator], float]] = {
    "add": (ops.Add, 0.0), "mul": (ops.Mul, 1.0), "max": (ops.Maximum, -np.inf), "min": (ops.Minimum, np.inf)
}  # fmt: skip
"""The operator that combines updates with elements, and its neutral element."""

# Each layer is a copy of the whole tensor and an operator over it.
_MOST_LAYERS = 16


def _combined(op: OpContext, value: Value, row: Tensor, places: Array, reduction: str) -> Value:
    """Combine the tensor with the first update of every position, then with the second, and so on."""
    operator, neutral = _COMBINING[reduction]
    if value.dtype is not DType.FLOAT32:
        raise op.type_unsupported(value.tensor, f"float32 for the reduction {reduction!r}")
    # One update of an element at a time: a position in a layer is the number of an update, or ``places.size`` for none.
    layers: list[Array] = []
    for update, place in enumerate(places.tolist()):
        layer = next((found for found in layers if found[place] == places.size), None)
        if layer is None:
            op.check_room((len(layers) + 1, *value.shape), np.dtype(np.int64).itemsize)
            layer = np.full(value.tensor.elements, places.size)
            layers.append(layer)
        if len(layers) > _MOST_LAYERS:
            raise op.unsupported(f"more than {_MOST_LAYERS} updates of one element are not supported")
        layer[place] = update
    extended = op.emit(
        ops.Concatenation(0), [row, op.weights("nothing", np.array([neutral], np.float32))], (row.elements + 1,)
    )
    tensor = value.tensor
    for layer in layers:
        spread = taken(op, op.made(extended), 0, layer.reshape(value.shape))
        tensor = op.binary(operator(), tensor, spread.tensor)
    return op.made(tensor)


OPERATORS: Mapping[str, Converter] = {
    "Compress": _compress,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "NonZero": _non_zero,
    "ReverseSequence": _reverse_sequence,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
}
