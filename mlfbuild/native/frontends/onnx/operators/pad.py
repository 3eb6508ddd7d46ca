"""Pad and CenterCropPad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators import computed
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    add,
    binary,
    multiply,
    relation,
    select,
    subtract,
)
from mlfbuild.native.frontends.onnx.operators.gather import taken
from mlfbuild.native.frontends.onnx.operators.slice import sliced
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import GraphError, Tensor, ops


def _pad(site: OnnxSite) -> tuple[Value, ...]:
    value, mode = site.held(0), site.text("mode", "constant")
    if site.opset >= 11 and any(site.has(index) and not site.is_constant(index) for index in (1, 2, 3)):
        return (_computed(site, value, mode),)
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


def padded(site: OnnxSite, value: Value, paddings: Sequence[tuple[int, int]]) -> Value:
    """Return ``value`` padded with the number in the node, 0 by default."""
    fill = _fill(site)
    operator: ops.Pad
    stored = tuple(paddings[axis] for axis in value.order)
    if fill == 0:
        operator = ops.Pad(stored)
    else:
        value, operator = site.builder.plain(value), ops.PadV2(stored, fill)
    shape = [size + sum(pair) for size, pair in zip(value.tensor.shape, stored, strict=True)]
    return value.moved(site.moved(operator, value.tensor, shape), value.order)


def _computed(site: OnnxSite, value: Value, mode: str) -> Value:
    """Pad by computed numbers of elements, or with a computed number, one dimension after the other."""
    pads, made = computed.integers(site, 1), _padded_shape(site, value)
    if pads.elements % 2:
        raise GraphError(site.node.place, f"{pads} is not one padding for each end of a dimension")
    befores = sliced(site, site.made(pads), [range(pads.elements // 2)]).tensor
    for axis, before in enumerate(computed.of_dimensions(site, befores, 3, value.rank, 0)):
        if before is not None:
            value = _padded_along(site, value, axis, made[axis], before, mode)
    if value.shape != made:
        raise GraphError(site.node.place, f"cannot make {list(made)} of {value.tensor}")
    return value


def _padded_shape(site: OnnxSite, value: Value) -> tuple[int, ...]:
    """Return the shape of the result, which the file must declare if the pads or the axes are computed."""
    for index, what in ((1, "pads"), (3, "axes")):
        if site.has(index) and not site.is_constant(index):
            return site.declared(index, what, value.rank)
    pads = site.integers("pads", 1) or ()
    axes = site.axes_in_order(site.integers("axes", 3) or () if site.has(3) else range(value.rank), value.rank)
    shape = list(value.shape)
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        shape[axis] += before + after
    return checked(site.name, shape, value.dtype).shape


def _padded_along(site: OnnxSite, value: Value, axis: int, wanted: int, before: Tensor, mode: str) -> Value:
    """Pad the dimension ``axis`` by ``before`` elements, and behind to ``wanted``; cut if they are negative."""
    size = value.shape[axis]
    position = subtract(site, computed.places(site, wanted), before)
    if mode == "constant":
        value = site.builder.plain(value)
        taken = computed.taken_at(site, value, axis, position)
        limits = ((ops.GreaterEqual(), 0), (ops.Less(), size))
        inside = binary(
            site, ops.LogicalAnd(), *(relation(site, operator, position, limit) for operator, limit in limits)
        )
        column = site.builder.reshaped(inside, computed.along(value, axis, inside))
        return value.moved(select(site, column, taken.tensor, _computed_fill(site, value)), value.order)
    if mode not in {"edge", "reflect", "wrap"}:
        raise GraphError(site.node.place, f"attribute mode is {mode!r}")
    if mode != "edge":
        first = binary(site, ops.Maximum(), multiply(site, before, -1), 0)
        end = binary(site, ops.Minimum(), add(site, multiply(site, before, -1), wanted), size)
        count = subtract(site, end, first)
        if mode == "reflect":
            count = multiply(site, add(site, count, -1), 2)
        count = binary(site, ops.Maximum(), count, 1)
        turned = binary(site, ops.FloorMod(), subtract(site, position, first), count)
        if mode == "reflect":
            turned = binary(site, ops.Minimum(), turned, subtract(site, count, turned))
        position = add(site, turned, first)
    return computed.taken_at(site, value, axis, position)


def _computed_fill(site: OnnxSite, value: Value) -> Tensor:
    """Return the number with which ``value`` is padded, without dimensions."""
    if not site.has(2):
        return site.weights("zero", np.zeros((), value.dtype.numpy))
    number = site.tensor(2)
    if number.elements != 1 or number.dtype is not value.dtype:
        raise GraphError(site.node.place, f"the padding {number} is not one {value.dtype.value}")
    return site.builder.reshaped(number, ())


def _fill(site: OnnxSite) -> float:
    if site.opset < 11:
        return site.real_attribute("value", 0.0)
    return float(site.constant_number(2, "padding")) if site.has(2) else 0.0


def _center_crop_pad(site: OnnxSite) -> tuple[Value, ...]:
    """Crop or pad with zeros equally on both sides until the dimensions have the requested sizes."""
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


def _mirrored(site: OnnxSite, value: Value, paddings: Sequence[tuple[int, int]], mode: str) -> Value:
    """Pad with the tensor's own elements: mirrored, the outermost ones, or from the other end."""
    within = all(max(pair) < size for pair, size in zip(paddings, value.shape, strict=True))
    if mode == "reflect" and within:
        stored = tuple(paddings[axis] for axis in value.order)
        shape = [size + sum(pair) for size, pair in zip(value.tensor.shape, stored, strict=True)]
        return value.moved(site.moved(ops.MirrorPad(stored, symmetric=False), value.tensor, shape), value.order)
    if mode not in {"edge", "reflect", "wrap"}:
        raise GraphError(site.node.place, f"attribute mode is {mode!r}")
    shape = [size + sum(pair) for size, pair in zip(value.shape, paddings, strict=True)]
    checked(site.name, shape, value.tensor.dtype)  # before an array of that size is allocated
    for axis, pair in enumerate(paddings):
        if any(pair):
            site.check_room(shape[axis : axis + 1], np.dtype(np.int64).itemsize)
            value = taken(site, value, axis, np.pad(np.arange(value.shape[axis]), pair, mode=mode))  # type: ignore[call-overload] # one of its modes
    return value


OPERATORS: Mapping[str, Converter] = {
    "CenterCropPad": _center_crop_pad,
    "Pad": _pad,
}
