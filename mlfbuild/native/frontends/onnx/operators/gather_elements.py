"""GatherElements, GatherND, Compress, NonZero, ReverseSequence and the scattering operators.

All of them become a GATHER on the tensor as a flat list of elements, or a SCATTER_ELEMENTS if they scatter at computed
positions. The flat positions are constant if the indices are; otherwise they are computed in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators import computed
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    add,
    binary,
    cast,
    multiply,
    relation,
    select,
    subtract,
)
from mlfbuild.native.frontends.onnx.operators.elementwise import NARROW
from mlfbuild.native.frontends.onnx.operators.gather import check_indices, taken
from mlfbuild.native.frontends.onnx.operators.slice import sliced
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, DType, GraphError, Operator, Tensor, ops

_EXACT = 1 << 24
"""float32 represents integers up to this exactly."""


def all_places(site: OnnxSite, shape: Sequence[int]) -> Array:
    """Return the flat position of each element of a tensor of ``shape``."""
    site.check_room(shape, np.dtype(np.int64).itemsize)
    return np.arange(math.prod(shape)).reshape(shape)


def picked(site: OnnxSite, value: Value, places: Array) -> Value:
    """Return the elements of ``value``, in ONNX's order, at the constant flat positions ``places``."""
    if places.size == 0:
        raise site.unsupported("the result has no elements", code="tensor-empty")
    row = value.moved(site.builder.reshaped(value.tensor, (value.tensor.elements,)))
    return taken(site, row, 0, places)


def from_front(site: OnnxSite, indices: Tensor, size: int) -> Tensor:
    """Return computed ``indices`` as float32; negative ones, which count from the end of ``size``, become positive."""
    check_indices(site, indices.dtype.value)
    number = site.emit(ops.Cast(), [indices], indices.shape, DType.FLOAT32)
    below = site.emit(ops.Less(), [number, site.number("zero", 0)], indices.shape, DType.BOOL)
    turned = add(site, number, size)
    return site.emit(ops.SelectV2(), [below, turned, number], indices.shape, DType.FLOAT32)


def _picked_by_computed(site: OnnxSite, value: Value, places: Tensor) -> Value:
    """Return the elements of ``value``, in ONNX's order, at the flat positions ``places``, which are float32."""
    whole = _whole(site, value, places)
    row = site.builder.reshaped(value.tensor, (value.tensor.elements,))
    return value.moved(site.emit(ops.Gather(0), [row, whole], whole.shape, quantization=row.quantization))


def _whole(site: OnnxSite, value: Value, places: Tensor) -> Tensor:
    """Return flat positions in ``value``, which were computed in float32, as int32."""
    if value.tensor.elements > _EXACT:
        raise site.unsupported(
            f"computed indices into more than {_EXACT} elements are not supported", "make the indices constant"
        )
    return site.emit(ops.Cast(), [places], places.shape, DType.INT32)


def _checked(site: OnnxSite, indices: Array, sizes: tuple[int, ...]) -> Array:
    """Return constant ``indices`` counted from the front; their last dimension corresponds to ``sizes``."""
    limits = np.array(sizes, np.int64)
    check_indices(site, indices.dtype.name)
    if ((indices < -limits) | (indices >= limits)).any():
        raise GraphError(site.node.place, f"has indices that are not in dimensions of {list(sizes)}")
    return np.where(indices < 0, indices + limits, indices)


def _gather_elements(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held_in_order(0)
    axis = site.axis(site.integer("axis", 0), value.rank)
    size = value.shape[axis]
    if site.is_constant(1):
        indices = _checked(site, site.constant(1, "indices")[..., np.newaxis], (size,))[..., 0]
        _check_within(site, indices.shape, value.shape, axis)
        return (picked(site, value, np.take_along_axis(_cut(site, value, indices.shape, axis), indices, axis)),)
    return (_picked_by_computed(site, value, _places_along(site, value, axis)),)


def _places_along(site: OnnxSite, value: Value, axis: int) -> Tensor:
    """Return the flat positions in ``value``, as float32, that computed indices (input 1) along ``axis`` select."""
    wanted = site.tensor(1)
    _check_within(site, wanted.shape, value.shape, axis)
    step = math.prod(value.shape[axis + 1 :])
    first = np.take(_cut(site, value, wanted.shape, axis), [0], axis=axis)
    along = multiply(site, from_front(site, wanted, value.shape[axis]), step)
    return add(site, along, site.weights("places", first.astype(np.float32)))


def _check_within(site: OnnxSite, shape: tuple[int, ...], limits: tuple[int, ...], axis: int) -> None:
    """Raise ``GraphError`` if ``shape`` exceeds ``limits`` in a dimension other than ``axis``."""
    fits = len(shape) == len(limits) and all(
        size <= limit for other, (size, limit) in enumerate(zip(shape, limits, strict=True)) if other != axis
    )
    if not fits:
        raise GraphError(site.node.place, f"indices {list(shape)} do not fit a tensor {list(limits)}")


def _cut(site: OnnxSite, value: Value, shape: tuple[int, ...], axis: int) -> Array:
    """Return the flat positions of ``value``, cut to ``shape`` in all dimensions except ``axis``."""
    cut = tuple(slice(None) if other == axis else slice(size) for other, size in enumerate(shape))
    return all_places(site, value.shape)[cut]


def _gather_nd(site: OnnxSite) -> tuple[Value, ...]:
    value, batch = site.held_in_order(0), site.integer("batch_dims", 0)
    shape = site.constant_shape(1) or site.held(1).shape
    depth = shape[-1] if shape else 0
    if not 0 <= batch < len(shape) or not 1 <= depth <= value.rank - batch or shape[:batch] != value.shape[:batch]:
        raise GraphError(site.node.place, f"indices {list(shape)} do not fit {value.tensor}")
    sizes = value.shape[batch : batch + depth]
    if site.is_constant(1):
        indices = _checked(site, site.constant(1, "indices"), sizes)
        return (picked(site, value, places_of(site, value.shape, indices, batch)),)
    return (_looked_up(site, value, site.value(1), sizes, batch),)


def places_of(site: OnnxSite, shape: tuple[int, ...], indices: Array, batch: int = 0) -> Array:
    """Return the flat positions in a tensor of ``shape`` that ``indices`` select in GatherND and ScatterND."""
    leading = np.ogrid[tuple(slice(size) for size in indices.shape[:batch])] if batch else ()
    spread = [index.reshape(*index.shape, *(1 for _ in indices.shape[batch:-1])) for index in leading]
    picked_from = (*spread, *np.moveaxis(indices, -1, 0))
    found: Array = all_places(site, shape)[picked_from]
    return found


def _looked_up(site: OnnxSite, value: Value, indices: Value, sizes: tuple[int, ...], batch: int) -> Value:
    """Convert GatherND with computed indices."""
    rest = value.shape[batch + len(sizes) :]
    places = _places_of_slices(site, value, indices, sizes, batch)
    if batch:
        begins = all_places(site, value.shape)[(slice(None),) * batch + (0,) * (value.rank - batch)]
        spread = (*begins.shape, *(1 for _ in indices.shape[batch:]))
        places = add(site, places, site.weights("batches", begins.reshape(spread).astype(np.float32)))
    found = _picked_by_computed(site, value, places)
    return found.moved(site.builder.reshaped(found.tensor, (*indices.shape[:-1], *rest)))


def _places_of_slices(site: OnnxSite, value: Value, indices: Value, sizes: tuple[int, ...], batch: int = 0) -> Tensor:
    """Return the flat positions in a ``batch`` of ``value``, as float32, of the slices at ``indices``, one in a row.

    The computed indices are multiplied by the strides, and the offsets within a slice are added.
    """
    rest = value.shape[batch + len(sizes) :]
    step = math.prod(rest)
    total: Tensor | None = None
    for number in reversed(range(len(sizes))):
        ranges = [*(range(size) for size in indices.shape[:-1]), range(number, number + 1)]
        part = site.builder.stored(sliced(site, indices, ranges), tuple(range(indices.rank)))
        along = multiply(site, from_front(site, part, sizes[number]), step)
        total = along if total is None else add(site, total, along)
        step *= sizes[number]
    assert total is not None
    behind = all_places(site, (math.prod(rest),)).astype(np.float32)
    return add(site, total, site.weights("places", behind))


def _compress(site: OnnxSite) -> tuple[Value, ...]:
    """Keep the elements that a condition selects; their number must be known."""
    value = site.held_in_order(0)
    axis = None if "axis" not in site.node.attributes else site.axis(site.integer("axis", 0), value.rank)
    size = value.tensor.elements if axis is None else value.shape[axis]
    if not site.is_constant(1):
        return (_compressed_by_computed(site, value, axis),)
    kept = np.flatnonzero(site.constant(1, "condition"))
    if kept.size == 0:
        raise site.unsupported("the condition keeps no elements", code="tensor-empty")
    if kept[-1] >= size:
        raise GraphError(site.node.place, f"the condition keeps element {kept[-1]} of {size}")
    return (picked(site, value, kept),) if axis is None else (taken(site, value, axis, kept),)


def _compressed_by_computed(site: OnnxSite, value: Value, axis: int | None) -> Value:
    """Keep as many elements as the declared shape of the result has."""
    made = site.declared(1, "condition", 1 if axis is None else value.rank)
    condition = site.tensor(1)
    if axis is None:
        value, axis = value.moved(site.builder.reshaped(value.tensor, (value.tensor.elements,))), 0
    if condition.dtype is not DType.BOOL or condition.elements > value.shape[axis]:
        raise GraphError(site.node.place, f"the condition {condition} does not fit dimension {axis} of {value.tensor}")
    kept = computed.taken_at(site, value, axis, _true_places(site, condition, made[axis]))
    if kept.shape != made:
        raise GraphError(site.node.place, f"cannot select {list(made)} of {value.tensor}")
    return kept


def _true_places(site: OnnxSite, condition: Tensor, count: int) -> Tensor:
    """Return the flat positions of the first ``count`` elements that are true; 0 instead of those that are missing."""
    row = site.builder.reshaped(condition, (condition.elements,))
    ranks = site.emit(ops.Cumsum(0, exclusive=True), [cast(site, row, DType.INT32)], row.shape)
    places = select(site, row, ranks, site.weights("nowhere", np.array(-1, np.int32)))
    blank = site.filled("blank", (count,), 0, np.int64)
    return site.emit(ops.ScatterElements(), [blank, places, computed.places(site, row.elements)], (count,))


def _non_zero(site: OnnxSite) -> tuple[Value, ...]:
    """Return the positions of as many elements as the declared shape has, one row for each dimension."""
    source = site.tensor(0)
    made = site.declared(0, "input", 2)
    rank = len(source.shape)
    if made[0] != rank or rank == 0 or source.elements > _EXACT:
        raise GraphError(site.node.place, f"cannot write {list(made)} positions in {source}")
    if source.dtype in NARROW:
        source = cast(site, source, DType.INT32)
    condition = source if source.dtype is DType.BOOL else relation(site, ops.NotEqual(), source, 0)
    places = _true_places(site, condition, made[1])
    row = cast(site, site.builder.reshaped(places, (1, made[1])), DType.INT32)
    strides = [math.prod(source.shape[axis + 1 :]) for axis in range(rank)]
    columns = (np.array(numbers, np.int32)[:, np.newaxis] for numbers in (strides, source.shape))
    step, size = (site.weights("column", numbers) for numbers in columns)
    along = binary(site, ops.FloorMod(), binary(site, ops.FloorDiv(), row, step), size)
    return (site.made(cast(site, along, DType.INT64)),)


def _reverse_sequence(site: OnnxSite) -> tuple[Value, ...]:
    """Reverse the first elements of every sequence."""
    if site.has(1) and not site.is_constant(1):
        return (_reversed_by_computed(site, site.held_in_order(0), site.tensor(1)),)
    value, lengths = site.held_in_order(0), np.array(site.integers("sequence_lens", 1) or (), np.int64)
    time, batch = site.integer("time_axis", 0), site.integer("batch_axis", 1)
    if {time, batch} != {0, 1} or value.rank < 2 or lengths.shape != value.shape[batch : batch + 1]:
        raise GraphError(
            site.node.place, f"{lengths.size} sequences along {batch} and {time} do not fit {value.tensor}"
        )
    if lengths.min() < 0 or lengths.max() > value.shape[time]:
        raise GraphError(site.node.place, f"has sequences that are longer than {value.shape[time]}")
    places = np.moveaxis(all_places(site, value.shape), batch, 0)
    turned = [
        np.concatenate([rows[:length][::-1], rows[length:]]) for rows, length in zip(places, lengths, strict=True)
    ]
    return (picked(site, value, np.moveaxis(np.stack(turned), 0, batch)),)


def _reversed_by_computed(site: OnnxSite, value: Value, lengths: Tensor) -> Value:
    """Reverse the first ``lengths[i]`` elements of sequence i.

    A length above the number of steps counts as all of them, one below 0 as 0.
    """
    time, batch = site.integer("time_axis", 0), site.integer("batch_axis", 1)
    if {time, batch} != {0, 1} or value.rank < 2 or lengths.shape != value.shape[batch : batch + 1]:
        raise GraphError(site.node.place, f"{lengths} along {batch} and {time} do not fit {value.tensor}")
    check_indices(site, lengths.dtype.value)
    steps, sequences = value.shape[time], value.shape[batch]
    count = site.emit(ops.Cast(), [lengths], lengths.shape, DType.FLOAT32)
    count = site.builder.reshaped(binary(site, ops.Minimum(), count, site.number("steps", steps)), (sequences, 1))
    at = site.weights("time", np.arange(steps, dtype=np.float32).reshape(1, steps))
    mirrored = subtract(site, add(site, count, -1), at)
    outside = relation(site, ops.Less(), mirrored, 0)
    turned = site.emit(ops.SelectV2(), [outside, at, mirrored], (sequences, steps), DType.FLOAT32)
    strides = [math.prod(value.shape[axis + 1 :]) for axis in (time, batch)]
    begin = site.weights("sequence", np.arange(sequences, dtype=np.float32).reshape(sequences, 1) * strides[1])
    places = add(site, multiply(site, turned, strides[0]), begin)
    if batch == 1:
        places = site.moved(ops.Transpose((1, 0)), places, (steps, sequences))
    rest = value.shape[2:]
    behind = site.weights("places", all_places(site, rest).astype(np.float32))
    row = site.builder.reshaped(places, (*value.shape[:2], *(1 for _ in rest)))
    return _picked_by_computed(site, value, add(site, row, behind))


def _scatter_elements(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held_in_order(0)
    axis = site.axis(site.integer("axis", 0), value.rank)
    if not site.is_constant(1):
        return (_scattered_by_computed(site, value, _places_along(site, value, axis), site.tensor(1).shape),)
    indices = site.constant(1, "indices")
    _check_within(site, indices.shape, value.shape, axis)
    indices = _checked(site, indices[..., np.newaxis], (value.shape[axis],))[..., 0]
    places = np.take_along_axis(_cut(site, value, indices.shape, axis), indices, axis)
    return (_scattered(site, value, places),)


def _scatter_nd(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held_in_order(0)
    shape = site.constant_shape(1) or site.held(1).shape
    depth = shape[-1] if shape else 0
    if not 1 <= depth <= value.rank:
        raise GraphError(site.node.place, f"indices {list(shape)} do not fit {value.tensor}")
    if not site.is_constant(1):
        places = _places_of_slices(site, value, site.value(1), value.shape[:depth])
        return (_scattered_by_computed(site, value, places, (*shape[:-1], *value.shape[depth:])),)
    indices = site.constant(1, "indices")
    return (_scattered(site, value, places_of(site, value.shape, _checked(site, indices, value.shape[:depth]))),)


def _scattered_by_computed(site: OnnxSite, value: Value, places: Tensor, shape: tuple[int, ...]) -> Value:
    """Return ``value`` with the updates (input 2), which have ``shape``, at computed flat ``places``."""
    value, updates, reduction = site.builder.plain(value), site.value(2), site.text("reduction", "none")
    if updates.shape != shape or updates.dtype is not value.dtype:
        raise GraphError(site.node.place, f"updates {updates.tensor} do not fit {list(shape)} of {value.tensor}")
    if reduction not in {"none", *_COMBINING}:
        raise GraphError(site.node.place, f"attribute reduction is {reduction!r}")
    if reduction != "none" and value.dtype is not DType.FLOAT32:
        raise site.type_unsupported(value.tensor, f"float32 for the reduction {reduction!r}")
    whole = site.builder.reshaped(_whole(site, value, places), (places.elements,))
    row = site.builder.reshaped(site.builder.stored(updates, tuple(range(updates.rank))), (places.elements,))
    source = site.builder.reshaped(value.tensor, (value.tensor.elements,))
    operator = ops.ScatterElements(ops.ScatterUpdate("set" if reduction == "none" else reduction))
    made = site.emit(operator, [source, whole, row], source.shape)
    return site.made(site.builder.reshaped(made, value.shape))


def _scattered(site: OnnxSite, value: Value, places: Array) -> Value:
    """Return ``value`` with the updates (input 2) at constant ``places``; the last one wins, or they are combined."""
    updates = site.value(2)
    value = site.builder.plain(value)
    if updates.shape != places.shape or updates.dtype is not value.dtype:
        raise GraphError(site.node.place, f"updates {updates.tensor} do not fit {list(places.shape)} of {value.tensor}")
    row = site.builder.reshaped(site.builder.stored(updates, tuple(range(updates.rank))), (places.size,))
    reduction = site.text("reduction", "none")
    if reduction == "none":
        return _overwritten(site, value, row, places.reshape(-1))
    if reduction not in _COMBINING:
        raise GraphError(site.node.place, f"attribute reduction is {reduction!r}")
    return _combined(site, value, row, places.reshape(-1), reduction)


def _overwritten(site: OnnxSite, value: Value, row: Tensor, places: Array) -> Value:
    """Select every element from the tensor, or from the updates that are appended to it."""
    source = site.builder.reshaped(value.tensor, (value.tensor.elements,))
    both = site.emit(ops.Concatenation(0), [source, row], (source.elements + row.elements,))
    origin = all_places(site, value.shape).reshape(-1)
    origin[places] = source.elements + np.arange(places.size)
    return taken(site, site.made(both), 0, origin.reshape(value.shape))


_COMBINING: dict[str, tuple[Callable[[], Operator], float]] = {
    "add": (ops.Add, 0.0), "mul": (ops.Mul, 1.0), "max": (ops.Maximum, -np.inf), "min": (ops.Minimum, np.inf)
}  # fmt: skip
"""The operator that combines updates with elements, and its neutral element."""

_MOST_LAYERS = 16


def _combined(site: OnnxSite, value: Value, row: Tensor, places: Array, reduction: str) -> Value:
    """Combine the tensor with the first update of every position, then with the second, and so on."""
    operator, neutral = _COMBINING[reduction]
    if value.dtype is not DType.FLOAT32:
        raise site.type_unsupported(value.tensor, f"float32 for the reduction {reduction!r}")
    layers: list[Array] = []
    for update, place in enumerate(places.tolist()):
        layer = next((found for found in layers if found[place] == places.size), None)
        if layer is None:
            site.check_room((len(layers) + 1, *value.shape), np.dtype(np.int64).itemsize)
            layer = np.full(value.tensor.elements, places.size)
            layers.append(layer)
        if len(layers) > _MOST_LAYERS:
            raise site.unsupported(f"more than {_MOST_LAYERS} updates of one element are not supported")
        layer[place] = update
    extended = site.emit(
        ops.Concatenation(0), [row, site.weights("nothing", np.array([neutral], np.float32))], (row.elements + 1,)
    )
    tensor = value.tensor
    for layer in layers:
        spread = taken(site, site.made(extended), 0, layer.reshape(value.shape))
        tensor = binary(site, operator(), tensor, spread.tensor)
    return site.made(tensor)


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
