"""Resize by scales, sizes or regions that the network computes in every run, with ONNX's formulas in float32."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators import computed
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    add,
    binary,
    cast,
    divide,
    multiply,
    reduced,
    relation,
    select,
    subtract,
    unary,
)
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, GraphError, Tensor, ops

_MOST_TAPS = 64
"""Elements that are summed for one element of the result."""

_WHOLE = 1e-6
"""A coordinate that is so near to a whole number, relative to the size, is that number."""


@dataclass(frozen=True, eq=False)
class _Line:
    """A dimension, its size before and after, and the computed numbers for it, which have one element."""

    axis: int
    size: int
    wanted: int
    scale: Tensor
    begin: Tensor
    end: Tensor
    """The region of interest, as fractions of the dimension."""


def resized(site: OnnxSite, value: Value, made: tuple[int, ...]) -> Value:
    """Return ``value`` in the shape ``made``, which the file declares."""
    mode = site.text("mode", "nearest")
    region = site.text("coordinate_transformation_mode", "") == "tf_crop_and_resize"
    axes = site.axes_in_order(site.integers("axes") or range(value.rank), value.rank)
    scales = _scales(site, value, axes)
    for index, axis in enumerate(axes):
        if value.shape[axis] == made[axis] == 1 and not region:
            continue  # any interpolation of one element is that element
        begin, end = site.number("begin", 0), site.number("end", 1)
        if region:
            roi = _row(site, 1, 2 * len(axes))
            begin, end = computed.element(site, roi, index), computed.element(site, roi, index + len(axes))
        scale = computed.element(site, scales, index)
        value = _along(site, value, _Line(axis, value.shape[axis], made[axis], scale, begin, end), mode)
    if value.shape != made:
        raise GraphError(site.node.place, f"cannot make {list(made)} of {value.tensor}")
    return value


def _row(site: OnnxSite, index: int, count: int) -> Tensor:
    tensor = site.tensor(index)
    if tensor.elements != count or tensor.dtype is not DType.FLOAT32:
        raise GraphError(site.node.place, f"input {index}, {tensor}, is not {count} float32")
    return site.builder.reshaped(tensor, (count,))


def _scales(site: OnnxSite, value: Value, axes: tuple[int, ...]) -> Tensor:
    """Return the scales of the dimensions ``axes``."""
    if not (site.opset >= 11 and site.has(3)):
        return _row(site, 2 if site.opset >= 11 and site.node.operator == "Resize" else 1, len(axes))
    before = site.weights("sizes", np.array([value.shape[axis] for axis in axes], np.float32))
    scales = divide(site, cast(site, computed.integers(site, 3, len(axes)), DType.FLOAT32), before)
    policy = site.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return scales
    one = reduced(site, ops.ReduceMin if policy == "not_larger" else ops.ReduceMax, scales, (0,))
    return site.moved(ops.BroadcastTo(), one, (len(axes),))


def _along(site: OnnxSite, value: Value, line: _Line, mode: str) -> Value:
    places = _coordinates(site, line)
    if mode == "nearest":
        made = computed.taken_at(site, value, line.axis, cast(site, _nearest(site, places, line), DType.INT64))
    else:
        value = site.builder.plain(value)
        if value.dtype is not DType.FLOAT32:
            raise site.type_unsupported(value.tensor, f"float32 for the mode {mode!r}")
        made = _interpolated(site, value, places, line, _cubic_parameter(site, mode))
    if site.text("coordinate_transformation_mode", "") != "tf_crop_and_resize":
        return made
    made = site.builder.plain(made)
    if made.dtype is not DType.FLOAT32:
        raise site.type_unsupported(made.tensor, "float32 for a region of interest")
    low, high = relation(site, ops.Less(), places, 0), relation(site, ops.Greater(), places, line.size - 1)
    outside = binary(site, ops.LogicalOr(), low, high)
    column = site.builder.reshaped(outside, computed.along(made, line.axis, outside))
    return made.moved(select(site, column, site.real_attribute("extrapolation_value", 0.0), made.tensor), made.order)


def _cubic_parameter(site: OnnxSite, mode: str) -> float | None:
    if mode not in {"linear", "cubic"}:
        raise GraphError(site.node.place, f"attribute mode is {mode!r}")
    return site.real_attribute("cubic_coeff_a", -0.75) if mode == "cubic" else None


def _coordinates(site: OnnxSite, line: _Line) -> Tensor:
    """Return the source coordinates of the elements of the result."""
    mode = site.text("coordinate_transformation_mode", "half_pixel" if site.opset >= 11 else "asymmetric")
    site.check_room((line.wanted,), DType.FLOAT32.size)
    place = site.weights("places", np.arange(line.wanted, dtype=np.float32))
    width = multiply(site, line.scale, line.size)
    halves = subtract(site, divide(site, add(site, place, 0.5), line.scale), 0.5)
    single = relation(site, ops.Equal(), width, 1)
    last = line.size - 1
    per_step = divide(site, site.number("last", last), subtract(site, width, 1))
    if mode == "half_pixel":
        return halves
    if mode == "pytorch_half_pixel":
        return select(site, relation(site, ops.Greater(), width, 1), halves, -0.5)
    if mode == "half_pixel_symmetric":
        share = subtract(site, site.number("one", 1), divide(site, site.number("wanted", line.wanted), width))
        return add(site, multiply(site, share, line.size / 2), halves)
    if mode == "asymmetric":
        return divide(site, place, line.scale)
    if mode == "align_corners":
        return select(site, single, 0, multiply(site, place, per_step))
    if mode == "tf_crop_and_resize":
        middle = multiply(site, add(site, line.begin, line.end), last / 2)
        along = multiply(site, multiply(site, place, subtract(site, line.end, line.begin)), per_step)
        return select(site, single, middle, add(site, multiply(site, line.begin, last), along))
    raise GraphError(site.node.place, f"attribute coordinate_transformation_mode is {mode!r}")


def _nearest(site: OnnxSite, places: Tensor, line: _Line) -> Tensor:
    """Return ``places`` rounded in the way of the node; rounding errors of the coordinates do not matter."""
    mode = site.text("nearest_mode", "round_prefer_floor" if site.opset >= 11 else "floor")
    known = {"floor": (0, ops.Floor()), "ceil": (0, ops.Ceil()), "round_prefer_floor": (-0.5, ops.Ceil()),
             "round_prefer_ceil": (0.5, ops.Floor())}  # fmt: skip
    if mode not in known:
        raise GraphError(site.node.place, f"attribute nearest_mode is {mode!r}")
    shift, rounding = known[mode]
    moved = add(site, places, shift) if shift else places
    whole = unary(site, ops.Round(), moved)
    near = relation(site, ops.Less(), unary(site, ops.Abs(), subtract(site, moved, whole)), _WHOLE * line.size)
    return select(site, near, whole, unary(site, rounding, moved))


def _interpolated(site: OnnxSite, value: Value, places: Tensor, line: _Line, cubic: float | None) -> Value:
    """Return the sum of neighbours, each with its share; the shares of neighbours too far away are 0."""
    positions, shares = _taps(site, places, line, cubic)
    total: Tensor | None = None
    for tap in range(positions.shape[0]):
        where, share = (_tap(site, table, tap) for table in (positions, shares))
        looked_up = computed.taken_at(site, value, line.axis, cast(site, where, DType.INT64))
        column = site.builder.reshaped(share, computed.along(value, line.axis, share))
        part = multiply(site, looked_up.tensor, column)
        total = part if total is None else add(site, total, part)
    assert total is not None
    return Value(total, value.order)


def _taps(site: OnnxSite, places: Tensor, line: _Line, cubic: float | None) -> tuple[Tensor, Tensor]:
    """Return the positions [taps, wanted] of the neighbours of ``places``, which are whole floats, and their shares."""
    antialias, exclude = site.integer("antialias", 0), site.integer("exclude_outside", 0)
    radius = 1 if cubic is None else 2
    offsets = np.arange(1 - radius, radius + 1, dtype=np.float32)
    if antialias:  # the scale is at least the declared one
        reach = math.ceil(radius * max(1.0, line.size / line.wanted))
        offsets = np.arange(-reach, reach + 1, dtype=np.float32)
    if offsets.size > _MOST_TAPS:
        raise site.unsupported(f"summing {offsets.size} elements for each element of the result is not supported")
    row = site.builder.reshaped(places, (1, line.wanted))
    positions = add(site, unary(site, ops.Floor(), row), site.weights("offsets", offsets[:, np.newaxis]))
    distance = unary(site, ops.Abs(), subtract(site, positions, row))
    if antialias:
        distance = multiply(site, distance, binary(site, ops.Minimum(), line.scale, 1))
    shares = _linear(site, distance) if cubic is None else _cubic(site, distance, cubic)
    if exclude:
        last = site.number("last", line.size - 1)
        low, high = relation(site, ops.GreaterEqual(), positions, 0), relation(site, ops.LessEqual(), positions, last)
        shares = select(site, binary(site, ops.LogicalAnd(), low, high), shares, 0)
    if antialias or exclude:
        shares = divide(site, shares, reduced(site, ops.Sum, shares, (0,)))
    return positions, shares


def _tap(site: OnnxSite, table: Tensor, tap: int) -> Tensor:
    """Return row ``tap`` of ``table``."""
    steps = (ops.Steps.of(range(tap, tap + 1)), ops.Steps.of(range(table.shape[1])))
    return site.builder.reshaped(site.moved(ops.StridedSlice(steps), table, (1, table.shape[1])), (table.shape[1],))


def _linear(site: OnnxSite, distance: Tensor) -> Tensor:
    return unary(site, ops.Relu(), subtract(site, site.number("one", 1), distance))


def _cubic(site: OnnxSite, distance: Tensor, a: float) -> Tensor:
    """Return the shares of Keys' cubic convolution with the parameter ``a``."""

    def polynomial(*factors: float) -> Tensor:
        made = multiply(site, distance, factors[0])
        for factor in factors[1:-1]:
            made = multiply(site, add(site, made, factor), distance)
        return add(site, made, factors[-1])

    near, far = polynomial(a + 2, -(a + 3), 0, 1), polynomial(a, -5 * a, 8 * a, -4 * a)
    beyond = select(site, relation(site, ops.Less(), distance, 2), far, 0)
    return select(site, relation(site, ops.LessEqual(), distance, 1), near, beyond)
