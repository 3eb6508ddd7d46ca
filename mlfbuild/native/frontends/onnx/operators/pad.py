"""Pad and CenterCropPad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion import runtime_parameters
from mlfbuild.native.frontends.onnx.conversion.selection import sliced, taken
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import GraphError, Tensor, ops


def _pad(op: OpContext) -> tuple[Value, ...]:
    value, mode = op.held(0), op.text("mode", "constant")
    if op.opset >= 11 and any(op.has(index) and not op.is_constant(index) for index in (1, 2, 3)):
        return (_computed(op, value, mode),)
    pads = op.integers("pads", 1 if op.opset >= 11 else None) or ()
    axes = op.axes_in_order(op.integers("axes", 3) or () if op.has(3) else range(value.rank), value.rank)
    if len(pads) != 2 * len(axes):
        raise GraphError(op.node.place, f"{len(pads)} paddings for {len(axes)} dimensions")
    ranges = [range(size) for size in value.shape]
    paddings = [(0, 0)] * value.rank
    for axis, before, after in zip(axes, pads[: len(axes)], pads[len(axes) :], strict=True):
        # ONNX's pads may be negative, which crops: a slice before the padding does that.
        size = value.shape[axis]
        ranges[axis] = range(max(0, -before), max(0, size + min(0, after)))
        paddings[axis] = (max(0, before), max(0, after))
    value = sliced(op, value, ranges)
    if not any(map(any, paddings)):
        return (value,)
    if mode == "constant":
        return (padded(op, value, paddings),)
    return (_mirrored(op, value, paddings, mode),)


def padded(op: OpContext, value: Value, paddings: Sequence[tuple[int, int]]) -> Value:
    """Return ``value`` padded with the number in the node, 0 by default."""
    fill = _fill(op)
    operator: ops.Pad
    stored = tuple(paddings[axis] for axis in value.order)
    # A zero keeps its stored value in any quantisation; another number must be float32.
    if fill == 0:
        operator = ops.Pad(stored)
    else:
        value, operator = op.builder.plain(value), ops.PadV2(stored, fill)
    shape = [size + sum(pair) for size, pair in zip(value.tensor.shape, stored, strict=True)]
    return value.moved(op.moved(operator, value.tensor, shape), value.order)


def _computed(op: OpContext, value: Value, mode: str) -> Value:
    """Pad by computed numbers of elements, or with a computed number, one dimension after the other."""
    pads, made = runtime_parameters.integers(op, 1), _padded_shape(op, value)
    if pads.elements % 2:
        raise GraphError(op.node.place, f"{pads} is not one padding for each end of a dimension")
    befores = sliced(op, op.made(pads), [range(pads.elements // 2)]).tensor
    for axis, before in enumerate(runtime_parameters.of_dimensions(op, befores, 3, value.rank, 0)):
        if before is not None:
            value = _padded_along(op, value, axis, made[axis], before, mode)
    if value.shape != made:
        raise GraphError(op.node.place, f"cannot make {list(made)} of {value.tensor}")
    return value


def _padded_shape(op: OpContext, value: Value) -> tuple[int, ...]:
    """Return the shape of the result, which the file must declare if the pads or the axes are computed."""
    for index, what in ((1, "pads"), (3, "axes")):
        if op.has(index) and not op.is_constant(index):
            return op.declared(index, what, value.rank)
    pads = op.integers("pads", 1) or ()
    axes = op.axes_in_order(op.integers("axes", 3) or () if op.has(3) else range(value.rank), value.rank)
    shape = list(value.shape)
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        shape[axis] += before + after
    return checked(op.name, shape, value.dtype).shape


def _padded_along(op: OpContext, value: Value, axis: int, wanted: int, before: Tensor, mode: str) -> Value:
    """Pad the dimension ``axis`` by ``before`` elements, and behind to ``wanted``; cut if they are negative."""
    size = value.shape[axis]
    position = op.subtract(runtime_parameters.places(op, wanted), before)
    # The position in the source of each element of the result; it is negative before the source.
    if mode == "constant":
        value = op.builder.plain(value)
        taken = runtime_parameters.taken_at(op, value, axis, position)
        limits = ((ops.GreaterEqual(), 0), (ops.Less(), size))
        inside = op.binary(ops.LogicalAnd(), *(op.relation(operator, position, limit) for operator, limit in limits))
        column = op.builder.reshaped(inside, runtime_parameters.along(value, axis, inside))
        return value.moved(op.select(column, taken.tensor, _computed_fill(op, value)), value.order)
    if mode not in {"edge", "reflect", "wrap"}:
        raise GraphError(op.node.place, f"attribute mode is {mode!r}")
    # Cropping comes first, and what is left is mirrored or repeated.
    if mode != "edge":
        first = op.binary(ops.Maximum(), op.multiply(before, -1), 0)
        end = op.binary(ops.Minimum(), op.add(op.multiply(before, -1), wanted), size)
        count = op.subtract(end, first)
        if mode == "reflect":
            count = op.multiply(op.add(count, -1), 2)
        # At least 1, since a remainder by 0 is not defined; a single element is then repeated.
        count = op.binary(ops.Maximum(), count, 1)
        turned = op.binary(ops.FloorMod(), op.subtract(position, first), count)
        if mode == "reflect":
            # A period of 2 * (count - 1) goes forth and back; the second half is mirrored.
            turned = op.binary(ops.Minimum(), turned, op.subtract(count, turned))
        position = op.add(turned, first)
    return runtime_parameters.taken_at(op, value, axis, position)


def _computed_fill(op: OpContext, value: Value) -> Tensor:
    """Return the number with which ``value`` is padded, without dimensions."""
    if not op.has(2):
        return op.weights("zero", np.zeros((), value.dtype.numpy))
    number = op.tensor(2)
    if number.elements != 1 or number.dtype is not value.dtype:
        raise GraphError(op.node.place, f"the padding {number} is not one {value.dtype.value}")
    return op.builder.reshaped(number, ())


def _fill(op: OpContext) -> float:
    if op.opset < 11:
        return op.real_attribute("value", 0.0)
    return float(op.constant_number(2, "padding")) if op.has(2) else 0.0


def _center_crop_pad(op: OpContext) -> tuple[Value, ...]:
    """Crop or pad with zeros equally on both sides until the dimensions have the requested sizes."""
    value, wanted = op.held(0), op.integers("shape", 1) or ()
    axes = op.axes_in_order(op.integers("axes") or range(value.rank), value.rank)
    if len(wanted) != len(axes) or min(wanted, default=0) < 1:
        raise GraphError(op.node.place, f"the sizes {list(wanted)} do not fit {len(axes)} dimensions")
    ranges = [range(size) for size in value.shape]
    paddings = [(0, 0)] * value.rank
    for axis, size in zip(axes, wanted, strict=True):
        more = size - value.shape[axis]
        ranges[axis] = range(-more // 2, -more // 2 + size) if more < 0 else ranges[axis]
        paddings[axis] = (more // 2, more - more // 2) if more > 0 else (0, 0)
    value = sliced(op, value, ranges)
    return (padded(op, value, paddings) if any(map(any, paddings)) else value,)


def _mirrored(op: OpContext, value: Value, paddings: Sequence[tuple[int, int]], mode: str) -> Value:
    """Pad with the tensor's own elements: mirrored, the outermost ones, or from the other end."""
    # MIRROR_PAD cannot repeat the mirror: wider paddings select elements by position.
    within = all(max(pair) < size for pair, size in zip(paddings, value.shape, strict=True))
    if mode == "reflect" and within:
        stored = tuple(paddings[axis] for axis in value.order)
        shape = [size + sum(pair) for size, pair in zip(value.tensor.shape, stored, strict=True)]
        return value.moved(op.moved(ops.MirrorPad(stored, symmetric=False), value.tensor, shape), value.order)
    if mode not in {"edge", "reflect", "wrap"}:
        raise GraphError(op.node.place, f"attribute mode is {mode!r}")
    shape = [size + sum(pair) for size, pair in zip(value.shape, paddings, strict=True)]
    checked(op.name, shape, value.tensor.dtype)  # before an array of that size is allocated
    for axis, pair in enumerate(paddings):
        if any(pair):
            op.check_room(shape[axis : axis + 1], np.dtype(np.int64).itemsize)
            value = taken(op, value, axis, np.pad(np.arange(value.shape[axis]), pair, mode=mode))  # type: ignore[call-overload] # one of its modes
    return value


OPERATORS: Mapping[str, Converter] = {
    "CenterCropPad": _center_crop_pad,
    "Pad": _pad,
}
