"""Operators that take tensors apart and put them together: Concat, Split, Slice, Gather, Expand, Tile and Pad."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.frontends.onnx.builder import MAXIMUM_DIMENSIONS, checked
from mlfbuild.frontends.onnx.layout import Order, Value, as_onnx
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import Array, DType, GraphError, Quantization, Tensor, ops
from mlfbuild.graph.ops.slice import Steps


def common_order(values: Sequence[Value]) -> Order:
    """Return the order of the first of ``values``, all of one rank, that would have to be moved otherwise."""
    onnx = as_onnx(values[0].rank)
    orders = [value.order for value in values if not value.tensor.constant]
    return next((order for order in orders if order != onnx), onnx)


def _concat(site: Site) -> tuple[Value, ...]:
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
        brought = [site.brought_to(tensor, quantization) for tensor in tensors]
        if None in brought:
            return _concat_real(site, values, order)
        tensors = [tensor for tensor in brought if tensor is not None]
    return (values[0].moved(_joined(site, tensors, order), order),)


def _concat_real(site: Site, values: Sequence[Value], order: Order) -> tuple[Value, ...]:
    tensors = [site.builder.stored(site.builder.plain(value), order) for value in values]
    return (site.made(_joined(site, tensors, order), order),)


def _joined(site: Site, tensors: Sequence[Tensor], order: Order) -> Tensor:
    axis = order.index(site.axis(site.integer("axis", 1), len(order)))
    shape = list(tensors[0].shape)
    shape[axis] = sum(tensor.shape[axis] for tensor in tensors)
    return site.emit(ops.Concatenation(axis), tensors, shape, quantization=tensors[0].quantization)


def _common_quantization(site: Site, values: Sequence[Value]) -> Quantization | None:
    """Return the scale and zero point on which float32 values are joined as int8, ``None`` where as they are."""
    if all(value.quantization is None for value in values):
        return None
    if site.held_target is not None:
        return site.held_target
    first = values[0].quantization
    return first if all(value.quantization == first for value in values) else None


def _split(site: Site) -> tuple[Value, ...]:
    value = site.held(0)
    axis = site.axis(site.integer("axis", 0), value.rank)
    size, count = value.shape[axis], len(site.node.outputs)
    lengths = site.integers("split", 1)
    if site.integer("num_outputs", count) != count:
        raise GraphError(site.node.place, f"attribute num_outputs is {site.integer('num_outputs', 0)}, has {count}")
    if lengths is None:
        longest = -(-size // count)
        lengths = (*(longest for _ in range(count - 1)), size - longest * (count - 1))
    if len(lengths) != count or sum(lengths) != size or min(lengths) < 0:
        raise GraphError(site.node.place, f"{list(lengths)} do not make {count} parts of {size} elements")
    if count == 1:
        return (value,)
    stored = value.stored(axis)
    shape = value.tensor.shape
    shapes = [(*shape[:stored], length, *shape[stored + 1 :]) for length in lengths]
    return tuple(value.moved(part, value.order) for part in site.outputs(ops.Split(stored), value.tensor, shapes))


def _slice(site: Site) -> tuple[Value, ...]:
    value = site.held(0)
    inputs = site.opset >= 10
    starts = site.integers("starts", 1 if inputs else None) or ()
    ends = site.integers("ends", 2 if inputs else None) or ()
    axes = site.integers("axes", 3 if inputs else None)
    steps = (site.integers("steps", 4) if inputs else None) or (1,) * len(starts)
    axes = site.axes_in_order(tuple(range(len(starts))) if axes is None else axes, value.rank)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise GraphError(site.node.place, f"has starts {starts}, ends {ends}, axes {axes} and steps {steps}")
    positions = [range(size) for size in value.shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        positions[axis] = positions[axis][start:end:step]
    return (sliced(site, value, positions),)


def sliced(site: Site, value: Value, positions: Sequence[range]) -> Value:
    """Return what is at ``positions`` of each of ONNX's dimensions."""
    if all(found == range(size) for found, size in zip(positions, value.shape, strict=True)):
        return value
    stored = [positions[axis] for axis in value.order]
    shape = [len(found) for found in stored]
    if 0 in shape:
        raise site.unsupported("the result has no elements")
    operator = ops.StridedSlice(tuple(Steps.of(found) for found in stored))
    return value.moved(site.moved(operator, value.tensor, shape), value.order)


def taken(site: Site, value: Value, axis: int, positions: Array) -> Value:
    """Return ``value`` with what is at the constant ``positions`` of its dimension ``axis``, from 0 on."""
    stored = value.stored(axis)
    indices = site.weights("positions", positions.astype(np.int32))
    shape = list(value.tensor.shape)
    shape[stored : stored + 1] = positions.shape
    operator = ops.Gather(stored)
    tensor = site.emit(operator, [value.tensor, indices], shape, quantization=value.tensor.quantization)
    return value.moved(tensor, _order_with(value.order, axis, positions.ndim))


def _order_with(order: Order, axis: int, rank: int) -> Order:
    """Return ``order`` after ``rank`` dimensions have taken the place of ``axis``."""
    new: list[int] = []
    for other in order:
        new.extend(range(axis, axis + rank) if other == axis else [other if other < axis else other + rank - 1])
    return tuple(new)


def _gather(site: Site) -> tuple[Value, ...]:
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


def check_indices(site: Site, dtype: str) -> None:
    """Raise ``GraphError`` unless ``dtype`` is one of those of indices."""
    if dtype not in {"int32", "int64"}:
        raise GraphError(site.node.place, f"the indices are {dtype}, not int32 or int64")


def _picked(site: Site, value: Value, axis: int, position: int) -> Value:
    ranges = [range(position, position + 1) if other == axis else range(size) for other, size in enumerate(value.shape)]
    part = sliced(site, value, ranges)
    kept = [other for other in part.order if other != axis]
    shape = [part.shape[other] for other in kept]
    return value.moved(site.builder.reshaped(part.tensor, shape), _order_with(part.order, axis, 0))


def _looked_up(site: Site, value: Value, axis: int) -> Value:
    """Gather by positions that are computed; those below 0 count from the end, which GATHER does not know."""
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


def _expand(site: Site) -> tuple[Value, ...]:
    value = site.held_in_order(0)
    wanted = list(site.integers("shape", 1) or ())
    if len(wanted) > MAXIMUM_DIMENSIONS:
        raise site.unsupported(f"a shape of {len(wanted)} dimensions; supported are {MAXIMUM_DIMENSIONS}")
    try:
        shape = np.broadcast_shapes(value.shape, tuple(wanted))
    except ValueError:
        raise GraphError(site.node.place, f"{value.tensor} does not broadcast to {wanted}") from None
    if shape == value.shape:
        return (value,)
    return (value.moved(site.moved(ops.BroadcastTo(), value.tensor, shape)),)


def _tile(site: Site) -> tuple[Value, ...]:
    value = site.held(0)
    repeats = list(site.integers("repeats", 1) or ())
    if len(repeats) != value.rank or min(repeats, default=1) < 0:
        raise GraphError(site.node.place, f"repeats {repeats} do not fit {value.tensor}")
    tensor, multiples = value.tensor, [repeats[axis] for axis in value.order]
    repeated = [axis for axis, count in enumerate(multiples) if count != 1]
    for start in range(0, len(repeated), _TILED_AT_ONCE):
        now = repeated[start : start + _TILED_AT_ONCE]
        counts = tuple(count if axis in now else 1 for axis, count in enumerate(multiples))
        shape = [size * count for size, count in zip(tensor.shape, counts, strict=True)]
        tensor = site.moved(ops.Tile(counts), tensor, shape)
    return (value.moved(tensor, value.order),)


_TILED_AT_ONCE = 2
"""Each is two dimensions to the kernel that moves elements, which takes a handful."""


def _pad(site: Site) -> tuple[Value, ...]:
    value, mode = site.held(0), site.text("mode", "constant")
    pads = site.integers("pads", 1 if site.opset >= 11 else None) or ()
    axes = site.axes_in_order(site.integers("axes", 3) or () if site.has(3) else range(value.rank), value.rank)
    if len(pads) != 2 * len(axes):
        raise GraphError(site.node.place, f"{len(pads)} paddings for {len(axes)} dimensions")
    ranges = [range(size) for size in value.shape]
    paddings = [(0, 0)] * value.rank
    for axis, before, after in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        size = value.shape[axis]
        ranges[axis] = range(max(0, -before), max(0, size + min(0, after)))
        paddings[axis] = (max(0, before), max(0, after))
    value = sliced(site, value, ranges)
    if not any(map(any, paddings)):
        return (value,)
    if mode == "constant":
        return (padded(site, value, paddings),)
    return (_mirrored(site, value, paddings, mode),)


def padded(site: Site, value: Value, paddings: Sequence[tuple[int, int]]) -> Value:
    """Return ``value`` with the number that the node names around it, 0 where it names none."""
    fill = _fill(site)
    operator: ops.Pad
    stored = tuple(paddings[axis] for axis in value.order)
    if fill == 0:
        operator = ops.Pad(stored)
    else:
        value, operator = site.builder.plain(value), ops.PadV2(stored, fill)
    shape = [size + sum(pair) for size, pair in zip(value.tensor.shape, stored, strict=True)]
    return value.moved(site.moved(operator, value.tensor, shape), value.order)


def _fill(site: Site) -> float:
    if site.opset < 11:
        return site.real_attribute("value", 0.0)
    return float(site.constant_number(2, "padding")) if site.has(2) else 0.0


def _center_crop_pad(site: Site) -> tuple[Value, ...]:
    """Cut off or add zeros, equally many on both sides, until dimensions have the wanted sizes."""
    value, wanted = site.held(0), site.integers("shape", 1) or ()
    axes = site.axes_in_order(site.integers("axes") or range(value.rank), value.rank)
    if len(wanted) != len(axes) or min(wanted, default=0) < 1:
        raise GraphError(site.node.place, f"the sizes {list(wanted)} do not fit {len(axes)} dimensions")
    ranges = [range(size) for size in value.shape]
    paddings = [(0, 0)] * value.rank
    for axis, size in zip(axes, wanted, strict=True):
        more = size - value.shape[axis]
        ranges[axis] = range(-more // 2, -more // 2 + size) if more < 0 else ranges[axis]
        paddings[axis] = (more // 2, more - more // 2) if more > 0 else (0, 0)
    value = sliced(site, value, ranges)
    return (padded(site, value, paddings) if any(map(any, paddings)) else value,)


def _mirrored(site: Site, value: Value, paddings: Sequence[tuple[int, int]], mode: str) -> Value:
    """Pad with the tensor's own elements: mirrored, the outermost ones, or from the other end."""
    within = all(max(pair) < size for pair, size in zip(paddings, value.shape, strict=True))
    if mode == "reflect" and within:
        stored = tuple(paddings[axis] for axis in value.order)
        shape = [size + sum(pair) for size, pair in zip(value.tensor.shape, stored, strict=True)]
        return value.moved(site.moved(ops.MirrorPad(stored, symmetric=False), value.tensor, shape), value.order)
    if mode not in {"edge", "reflect", "wrap"}:
        raise GraphError(site.node.place, f"attribute mode is {mode!r}")
    shape = [size + sum(pair) for size, pair in zip(value.shape, paddings, strict=True)]
    checked(site.name, shape, value.tensor.dtype)  # before anything of that size is made
    for axis, pair in enumerate(paddings):
        if any(pair):
            value = taken(site, value, axis, np.pad(np.arange(value.shape[axis]), pair, mode=mode))  # type: ignore[call-overload] # one of its modes
    return value


OPERATORS = {
    "CenterCropPad": _center_crop_pad,
    "Concat": _concat,
    "Expand": _expand,
    "Gather": _gather,
    "Pad": _pad,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
}
