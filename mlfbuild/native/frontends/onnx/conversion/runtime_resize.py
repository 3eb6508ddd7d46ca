"""Resize by scales, sizes or regions that the network computes in every run, with ONNX's formulas in float32."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mlfbuild.native.frontends.onnx.conversion import runtime_parameters
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, GraphError, Tensor, ops

# Each is a gather, a product and a sum of the whole result.
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


def resized(op: OpContext, value: Value, made: tuple[int, ...]) -> Value:
    """Return ``value`` in the shape ``made``, which the file declares.

    The result has the shape ``made`` and the type of ``value``, or float32 if it is interpolated. Raises ``GraphError``
    if the declared shape cannot be the result.
    """
    mode = op.text("mode", "nearest")
    region = op.text("coordinate_transformation_mode", "") == "tf_crop_and_resize"
    axes = op.axes_in_order(op.integers("axes") or range(value.rank), value.rank)
    scales = _scales(op, value, axes)
    for index, axis in enumerate(axes):
        if value.shape[axis] == made[axis] == 1 and not region:
            continue  # any interpolation of one element is that element
        begin, end = op.number("begin", 0), op.number("end", 1)
        if region:
            roi = _row(op, 1, 2 * len(axes))
            begin, end = (
                runtime_parameters.element(op, roi, index),
                # Regions follow each other in one input: all begins, then all ends.
                runtime_parameters.element(op, roi, index + len(axes)),
            )
        scale = runtime_parameters.element(op, scales, index)
        value = _along(op, value, _Line(axis, value.shape[axis], made[axis], scale, begin, end), mode)
    if value.shape != made:
        raise GraphError(op.node.place, f"cannot make {list(made)} of {value.tensor}")
    return value


def _row(op: OpContext, index: int, count: int) -> Tensor:
    tensor = op.tensor(index)
    if tensor.elements != count or tensor.dtype is not DType.FLOAT32:
        raise GraphError(op.node.place, f"input {index}, {tensor}, is not {count} float32")
    return op.builder.reshaped(tensor, (count,))


def _scales(op: OpContext, value: Value, axes: tuple[int, ...]) -> Tensor:
    """Return the scales of the dimensions ``axes``."""
    if not (op.opset >= 11 and op.has(3)):
        # Upsample, and Resize of version 10, have the scales one input earlier, before the region of interest existed.
        return _row(op, 2 if op.opset >= 11 and op.node.operator == "Resize" else 1, len(axes))
    # The sizes give the scales: ONNX's formulas use the scale even if sizes are given.
    before = op.weights("sizes", np.array([value.shape[axis] for axis in axes], np.float32))
    scales = op.divide(op.cast(runtime_parameters.integers(op, 3, len(axes)), DType.FLOAT32), before)
    policy = op.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return scales
    one = op.reduced(ops.ReduceMin if policy == "not_larger" else ops.ReduceMax, scales, (0,))
    return op.moved(ops.BroadcastTo(), one, (len(axes),))


def _along(op: OpContext, value: Value, line: _Line, mode: str) -> Value:
    places = _coordinates(op, line)
    if mode == "nearest":
        made = runtime_parameters.taken_at(op, value, line.axis, op.cast(_nearest(op, places, line), DType.INT64))
    else:
        value = op.builder.plain(value)
        if value.dtype is not DType.FLOAT32:
            raise op.type_unsupported(value.tensor, f"float32 for the mode {mode!r}")
        made = _interpolated(op, value, places, line, _cubic_parameter(op, mode))
    if op.text("coordinate_transformation_mode", "") != "tf_crop_and_resize":
        return made
    made = op.builder.plain(made)
    if made.dtype is not DType.FLOAT32:
        raise op.type_unsupported(made.tensor, "float32 for a region of interest")
    # Only crop_and_resize reads beyond the image: other modes clamp to the border.
    low, high = op.relation(ops.Less(), places, 0), op.relation(ops.Greater(), places, line.size - 1)
    outside = op.binary(ops.LogicalOr(), low, high)
    column = op.builder.reshaped(outside, runtime_parameters.along(made, line.axis, outside))
    return made.moved(op.select(column, op.real_attribute("extrapolation_value", 0.0), made.tensor), made.order)


def _cubic_parameter(op: OpContext, mode: str) -> float | None:
    if mode not in {"linear", "cubic"}:
        raise GraphError(op.node.place, f"attribute mode is {mode!r}")
    return op.real_attribute("cubic_coeff_a", -0.75) if mode == "cubic" else None


def _coordinates(op: OpContext, line: _Line) -> Tensor:
    """Return the source coordinates of the elements of the result."""
    mode = op.text("coordinate_transformation_mode", "half_pixel" if op.opset >= 11 else "asymmetric")
    op.check_room((line.wanted,), DType.FLOAT32.size)
    place = op.weights("places", np.arange(line.wanted, dtype=np.float32))
    width = op.multiply(line.scale, line.size)
    halves = op.subtract(op.divide(op.add(place, 0.5), line.scale), 0.5)
    single = op.relation(ops.Equal(), width, 1)
    last = line.size - 1
    per_step = op.divide(op.number("last", last), op.subtract(width, 1))
    if mode == "half_pixel":
        return halves
    if mode == "pytorch_half_pixel":
        return op.select(op.relation(ops.Greater(), width, 1), halves, -0.5)
    if mode == "half_pixel_symmetric":
        share = op.subtract(op.number("one", 1), op.divide(op.number("wanted", line.wanted), width))
        return op.add(op.multiply(share, line.size / 2), halves)
    if mode == "asymmetric":
        return op.divide(place, line.scale)
    if mode == "align_corners":
        return op.select(single, 0, op.multiply(place, per_step))
    if mode == "tf_crop_and_resize":
        middle = op.multiply(op.add(line.begin, line.end), last / 2)
        along = op.multiply(op.multiply(place, op.subtract(line.end, line.begin)), per_step)
        return op.select(single, middle, op.add(op.multiply(line.begin, last), along))
    raise GraphError(op.node.place, f"attribute coordinate_transformation_mode is {mode!r}")


def _nearest(op: OpContext, places: Tensor, line: _Line) -> Tensor:
    """Return ``places`` rounded in the way of the node; rounding errors of the coordinates do not matter."""
    # The order of opset 11; earlier versions rounded down.
    mode = op.text("nearest_mode", "round_prefer_floor" if op.opset >= 11 else "floor")
    known = {"floor": (0, ops.Floor()), "ceil": (0, ops.Ceil()), "round_prefer_floor": (-0.5, ops.Ceil()),
             "round_prefer_ceil": (0.5, ops.Floor())}  # fmt: skip
    if mode not in known:
        raise GraphError(op.node.place, f"attribute nearest_mode is {mode!r}")
    shift, rounding = known[mode]
    moved = op.add(places, shift) if shift else places
    whole = op.unary(ops.Round(), moved)
    # In float32, a place that should be whole may be off by its last bits, more so in long dimensions.
    near = op.relation(ops.Less(), op.unary(ops.Abs(), op.subtract(moved, whole)), _WHOLE * line.size)
    return op.select(near, whole, op.unary(rounding, moved))


def _interpolated(op: OpContext, value: Value, places: Tensor, line: _Line, cubic: float | None) -> Value:
    """Return the sum of neighbours, each with its share; the shares of neighbours too far away are 0."""
    positions, shares = _taps(op, places, line, cubic)

    def part(tap: int) -> Tensor:
        where, share = (_tap(op, table, tap) for table in (positions, shares))
        looked_up = runtime_parameters.taken_at(op, value, line.axis, op.cast(where, DType.INT64))
        column = op.builder.reshaped(share, runtime_parameters.along(value, line.axis, share))
        return op.multiply(looked_up.tensor, column)

    return Value(op.summed(map(part, range(positions.shape[0]))), value.order)


def _taps(op: OpContext, places: Tensor, line: _Line, cubic: float | None) -> tuple[Tensor, Tensor]:
    """Return the positions [taps, wanted] of the neighbours of ``places``, which are whole floats, and their shares."""
    antialias, exclude = op.integer("antialias", 0), op.integer("exclude_outside", 0)
    radius = 1 if cubic is None else 2
    offsets = np.arange(1 - radius, radius + 1, dtype=np.float32)
    if antialias:  # the scale is at least the declared one
        reach = math.ceil(radius * max(1.0, line.size / line.wanted))
        offsets = np.arange(-reach, reach + 1, dtype=np.float32)
    if offsets.size > _MOST_TAPS:
        raise op.unsupported(f"summing {offsets.size} elements for each element of the result is not supported")
    row = op.builder.reshaped(places, (1, line.wanted))
    positions = op.add(op.unary(ops.Floor(), row), op.weights("offsets", offsets[:, np.newaxis]))
    distance = op.unary(ops.Abs(), op.subtract(positions, row))
    if antialias:
        distance = op.multiply(distance, op.binary(ops.Minimum(), line.scale, 1))
    shares = _linear(op, distance) if cubic is None else _cubic(op, distance, cubic)
    if exclude:
        last = op.number("last", line.size - 1)
        low, high = op.relation(ops.GreaterEqual(), positions, 0), op.relation(ops.LessEqual(), positions, last)
        shares = op.select(op.binary(ops.LogicalAnd(), low, high), shares, 0)
    if antialias or exclude:
        shares = op.divide(shares, op.reduced(ops.Sum, shares, (0,)))
    return positions, shares


def _tap(op: OpContext, table: Tensor, tap: int) -> Tensor:
    """Return row ``tap`` of ``table``."""
    steps = (ops.Steps.of(range(tap, tap + 1)), ops.Steps.of(range(table.shape[1])))
    return op.builder.reshaped(op.moved(ops.StridedSlice(steps), table, (1, table.shape[1])), (table.shape[1],))


def _linear(op: OpContext, distance: Tensor) -> Tensor:
    return op.unary(ops.Relu(), op.subtract(op.number("one", 1), distance))


def _cubic(op: OpContext, distance: Tensor, a: float) -> Tensor:
    """Return the shares of Keys' cubic convolution with the parameter ``a``."""

    def polynomial(*factors: float) -> Tensor:
        made = op.multiply(distance, factors[0])
        for factor in factors[1:-1]:
            made = op.multiply(op.add(made, factor), distance)
        # Horner's rule, so that each power costs one product.
        return op.add(made, factors[-1])

    near, far = polynomial(a + 2, -(a + 3), 0, 1), polynomial(a, -5 * a, 8 * a, -4 * a)
    beyond = op.select(op.relation(ops.Less(), distance, 2), far, 0)
    return op.select(op.relation(ops.LessEqual(), distance, 1), near, beyond)
