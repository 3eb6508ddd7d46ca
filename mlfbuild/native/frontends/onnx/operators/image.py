"""Resize, Upsample, GridSample, RoiAlign and DeformConv: samples of images; NonMaxSuppression: boxes in them.

NonMaxSuppression returns a fixed number of rows, filled with -1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion.image import lines
from mlfbuild.native.frontends.onnx.conversion.resize_taps import Spacing, coordinates, interpolation, nearest
from mlfbuild.native.frontends.onnx.conversion.runtime_resize import resized
from mlfbuild.native.frontends.onnx.conversion.selection import sliced, taken
from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops

_BOXES, _SCORES, _MOST, _OVERLAP, _LEAST = range(5)


def _select(op: OpContext) -> tuple[Value, ...]:
    """Return a row for each box that is selected, and add their number to the outputs if the file leaves it open."""
    boxes, scores = op.tensor(_BOXES), op.tensor(_SCORES)
    if len(boxes.shape) != 3 or len(scores.shape) != 3 or boxes.shape[2] != 4:
        raise GraphError(op.node.place, f"{boxes} and {scores} are not boxes and scores")
    if op.integer("center_point_box", 0):
        boxes = _corners(op, boxes)
    if op.has(_MOST) and not op.is_constant(_MOST):
        rows: int | None = op.declared(_MOST, "max_output_boxes_per_class", 2)[0]
    else:
        shape = op.shapes[0] if op.shapes else None
        rows = shape[0] if shape else None  # as many as the file declares
    count = _greatest_count(op, boxes, scores) if rows is None else rows
    limits = [
        _number(op, _MOST, "max_output", np.array(0, np.int64)),
        _number(op, _OVERLAP, "iou_threshold", np.array(0, np.float32)),
        _number(op, _LEAST, "score_threshold", np.array(-np.inf, np.float32)),
    ]
    made, found = op.builder.emit(
        op.name, ops.NonMaxSuppression(), [boxes, scores, *limits],
        checked(op.name, (count, 3), DType.INT64), checked(op.name, (), DType.INT64),
    )  # fmt: skip
    if rows is None:
        op.builder.report(f"{op.name}_count", op.made(found))
    return (op.made(made),)


def _greatest_count(op: OpContext, boxes: Tensor, scores: Tensor) -> int:
    """Return the greatest possible number of rows for the constant number of boxes per class."""
    most = max(op.constant_integer(_MOST, "max_output_boxes_per_class"), 0) if op.has(_MOST) else 0
    count = scores.shape[0] * scores.shape[1] * min(most, boxes.shape[1])
    if count == 0:
        raise op.unsupported(
            "max_output_boxes_per_class is 0, so no box is selected",
            "export the network with a greater number",
            "tensor-empty",
        )
    return count


def _number(op: OpContext, index: int, word: str, default: np.ndarray) -> Tensor:
    if not op.has(index):
        return op.weights(word, default)
    tensor = op.tensor(index)
    if tensor.elements != 1 or tensor.dtype.numpy != default.dtype:
        raise GraphError(op.node.place, f"input {index}, {tensor}, is not one number of type {default.dtype.name}")
    return op.builder.reshaped(tensor, ())


def _corners(op: OpContext, boxes: Tensor) -> Tensor:
    """Return boxes of x, y, width and height around a centre as two corners."""
    whole = [range(size) for size in boxes.shape[:2]]
    centre, size = (sliced(op, op.made(boxes), [*whole, part]).tensor for part in (range(2), range(2, 4)))
    half = op.multiply(size, 0.5)
    parts = [op.subtract(centre, half), op.add(centre, half)]
    return op.emit(ops.Concatenation(2), parts, boxes.shape)


_MODES = {
    "nearest": ops.Interpolation.NEAREST,
    "linear": ops.Interpolation.LINEAR,
    "bilinear": ops.Interpolation.LINEAR,
    "cubic": ops.Interpolation.CUBIC,
    "bicubic": ops.Interpolation.CUBIC,
}
_HALF_PIXEL_SINCE = 16
"""The version of RoiAlign that has coordinate_transformation_mode, by ONNX's version of its operators."""


def _grid_sample(op: OpContext) -> tuple[Value, ...]:
    value, grid = op.value(0), op.tensor(1)
    mode, outside = op.text("mode", "linear"), op.text("padding_mode", "zeros")
    if mode not in _MODES or outside.upper() not in ops.Outside.__members__:
        raise GraphError(op.node.place, f"attribute mode is {mode!r}, and padding_mode {outside!r}")
    if not 3 <= value.rank <= 5 or len(grid.shape) != value.rank:
        raise op.unsupported(
            f"an image of {value.rank} dimensions and a grid of {len(grid.shape)} are not supported",
            "use images of up to 3 spatial dimensions, and a grid of as many dimensions as the image",
        )
    operator = ops.GridSample(_MODES[mode], ops.Outside[outside.upper()], op.integer("align_corners", 0) != 0)
    source = _image(op, value)
    made = op.emit(operator, [source, grid], (*grid.shape[:-1], source.shape[-1]))
    return (Value(made, channels_last(value.rank)),)


def _roi_align(op: OpContext) -> tuple[Value, ...]:
    default = "half_pixel" if op.opset >= _HALF_PIXEL_SINCE else "output_half_pixel"
    place, mode = op.text("coordinate_transformation_mode", default), op.text("mode", "avg").lower()
    if place not in {"half_pixel", "output_half_pixel"} or mode not in {"avg", "max"}:
        raise GraphError(op.node.place, f"attribute mode is {mode!r}, and coordinate_transformation_mode {place!r}")
    value, boxes, images = op.value(0), op.tensor(1), op.tensor(2)
    if value.rank != 4:
        raise GraphError(op.node.place, f"{value.tensor} is not a batch of images with 4 dimensions")
    if images.dtype is not DType.INT64:
        raise op.type_unsupported(images, "int64")
    size = op.integer("output_height", 1), op.integer("output_width", 1)
    operator = ops.RoiAlign(
        size, max(op.integer("sampling_ratio", 0), 0), op.real_attribute("spatial_scale", 1.0),
        half_pixel=place == "half_pixel", greatest=mode == "max",
    )  # fmt: skip
    source = _image(op, value)
    made = op.emit(operator, [source, boxes, images], (*images.shape, *size, source.shape[3]))
    return (Value(made, channels_last(4)),)


def _deform_conv(op: OpContext) -> tuple[Value, ...]:
    value, weights, offsets = op.value(0), op.value(1), op.value(2)
    if value.rank != 4 or weights.rank != 4 or offsets.rank != 4:
        raise op.unsupported("only images of 2 dimensions are supported", "use 2-D images")
    if op.integers("kernel_shape") not in {None, weights.shape[2:]}:
        raise GraphError(op.node.place, f"attribute kernel_shape does not fit the filter {list(weights.shape)}")
    rows, columns = lines(op, value.shape[2:], weights.shape[2:])
    filters = op.builder.stored(weights, (2, 3, 1, 0))
    outputs = weights.shape[0]
    bias = op.tensor(3) if op.has(3) else op.filled("bias", (outputs,), 0.0, "float32")
    mask = [_image(op, op.value(4))] if op.has(4) else []
    operator = ops.DeformConv(
        (rows.stride, columns.stride), (rows.dilation, columns.dilation), (rows.padding[0], columns.padding[0]),
        op.integer("group", 1), op.integer("offset_group", 1),
    )  # fmt: skip
    if min(operator.groups, operator.offset_groups) < 1:
        raise GraphError(
            op.node.place, f"attribute group is {operator.groups}, and offset_group {operator.offset_groups}"
        )
    shape = (value.shape[0], rows.output, columns.output, outputs)
    made = op.emit(operator, [_image(op, value), filters, _image(op, offsets), bias, *mask], shape)
    return (Value(made, channels_last(4)),)


def _image(op: OpContext, value: Value) -> Tensor:
    return op.builder.stored(value, channels_last(value.rank))


_MOST_ELEMENTS = 1 << 24
"""Elements of the interpolation matrix along a dimension."""


def _resize(op: OpContext) -> tuple[Value, ...]:
    value = op.held(0)
    if unknown := _unknown(op):
        return (resized(op, value, op.declared(unknown[0], unknown[1], value.rank)),)
    spacings = _spacings(op, value)
    checked(op.name, [spacing.wanted for spacing in spacings], value.tensor.dtype)
    mode = op.text("mode", "nearest")
    transformation = op.text("coordinate_transformation_mode", "half_pixel" if op.opset >= 11 else "asymmetric")
    if mode == "linear" and not op.integer("antialias", 0):
        made = _bilinear(op, value, spacings, transformation)
        if made is not None:
            return (made,)
    for axis, spacing in enumerate(spacings):
        if spacing.size != spacing.wanted or spacing.scale != 1.0:
            value = _along(op, value, axis, spacing, mode, transformation)
    return (value,)


def _unknown(op: OpContext) -> tuple[int, str] | None:
    """Return the first parameter that is computed in every run, and its name."""
    # Upsample and Resize of version 10 have no region of interest, so that inputs are one place earlier.
    for index, what in enumerate(("roi", "scales", "sizes"), 1):
        place = index if op.opset >= 11 and op.node.operator == "Resize" else index - 1
        read = what != "roi" or op.text("coordinate_transformation_mode", "") == "tf_crop_and_resize"
        if read and place and op.has(place) and not op.is_constant(place):
            return place, what
    return None


def _spacings(op: OpContext, value: Value) -> list[Spacing]:
    """Return the sizes before and after, for each of ONNX's dimensions."""
    axes = op.axes_in_order(op.integers("axes") or range(value.rank), value.rank)
    if op.opset >= 11 and op.has(3):
        sizes = op.integers("sizes", 3) or ()
        scales = tuple(size / value.shape[axis] for axis, size in zip(axes, sizes, strict=False))
        scales, sizes = _with_policy(op, value, axes, scales, sizes)
    else:
        scales = _scales(op)
        scaled = zip(axes, scales, strict=False)
        # 1 << 31 is refused as too large; the floor of infinity or of NaN would raise here.
        sizes = tuple(math.floor(value.shape[axis] * scale) if 0 < scale < 1e9 else 1 << 31 for axis, scale in scaled)
    if not len(scales) == len(sizes) == len(axes) or not all(math.isfinite(scale) and scale > 0 for scale in scales):
        raise GraphError(op.node.place, f"has scales {list(scales)} for {len(axes)} dimensions")
    lines = zip(axes, sizes, scales, strict=True)
    made = {axis: Spacing(value.shape[axis], size, scale) for axis, size, scale in lines}
    return [made.get(axis, Spacing(size, size, 1.0)) for axis, size in enumerate(value.shape)]


def _with_policy(
    op: OpContext, value: Value, axes: Sequence[int], scales: tuple[float, ...], sizes: tuple[int, ...]
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    policy = op.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch" or not scales:
        return scales, sizes
    scale = min(scales) if policy == "not_larger" else max(scales)
    # Rounded half up, as ONNX defines it for keep_aspect_ratio_policy.
    return (scale,) * len(axes), tuple(math.floor(value.shape[axis] * scale + 0.5) for axis in axes)


def _scales(op: OpContext) -> tuple[float, ...]:
    """Return the scales, which are an attribute in Upsample of opset 7 and an input in all others."""
    found = op.node.attributes.get("scales")
    if isinstance(found, tuple):
        return tuple(float(scale) for scale in found)
    index = 2 if op.opset >= 11 and op.node.operator == "Resize" else 1
    return tuple(float(scale) for scale in op.constant(index, "scales").reshape(-1))


def _along(op: OpContext, value: Value, axis: int, spacing: Spacing, mode: str, transformation: str) -> Value:
    """Resize one dimension by gathering the nearest elements, or by a weighted sum of several gathers."""
    if spacing.size * spacing.wanted > _MOST_ELEMENTS:
        raise op.unsupported(f"resizing {spacing.size} elements to {spacing.wanted} is not supported")
    try:
        places = coordinates(spacing, transformation, _region(op, value, axis))
        outside = ((places < 0) | (places > spacing.size - 1)) & (transformation == "tf_crop_and_resize")
        if mode == "nearest":
            # Upsample, and Resize of version 10, had no mode and rounded down.
            default = "round_prefer_floor" if op.opset >= 11 else "floor"
            # One dimension after the other, because ONNX's interpolation is a product over the dimensions.
            picked = nearest(places, spacing.size, op.text("nearest_mode", default))
            return _extrapolated(op, taken(op, value, axis, picked), axis, outside)
    except ValueError as error:
        raise GraphError(op.node.place, str(error)) from None
    if mode not in {"linear", "cubic"}:
        raise GraphError(op.node.place, f"attribute mode is {mode!r}")
    taps = interpolation(
        places, spacing, op.real_attribute("cubic_coeff_a", -0.75) if mode == "cubic" else None,
        antialias=op.integer("antialias", 0) != 0, exclude_outside=op.integer("exclude_outside", 0) != 0,
    )  # fmt: skip
    plain = op.builder.plain(value)
    if plain.dtype is not DType.FLOAT32:
        raise op.type_unsupported(plain.tensor, f"float32 for the mode {mode!r}")
    parts = [_share(op, plain, axis, *tap) for tap in zip(taps.positions, taps.shares, strict=True)]
    total = parts[0].tensor
    for part in parts[1:]:
        total = op.add(total, part.tensor)
    return _extrapolated(op, Value(total, parts[0].order), axis, outside)


def _extrapolated(op: OpContext, value: Value, axis: int, outside: Array) -> Value:
    """Return ``value`` with the extrapolation value at the positions of ``axis`` that are ``outside`` the image."""
    if not outside.any():
        return value
    value = op.builder.plain(value)
    if value.dtype is not DType.FLOAT32:
        raise op.type_unsupported(value.tensor, "float32 for a region of interest that is partly outside of the tensor")
    spread = [-1 if other == value.stored(axis) else 1 for other in range(value.rank)]
    number = op.real_attribute("extrapolation_value", 0.0)
    return Value(op.select(op.weights("outside", outside.reshape(spread)), number, value.tensor), value.order)


def _share(op: OpContext, value: Value, axis: int, positions: Array, shares: Array) -> Value:
    looked_up = taken(op, value, axis, positions)
    spread = [-1 if other == looked_up.stored(axis) else 1 for other in range(value.rank)]
    share = op.weights("share", shares.astype(np.float32).reshape(spread))
    return Value(op.multiply(looked_up.tensor, share), looked_up.order)


def _region(op: OpContext, value: Value, axis: int) -> tuple[float, float]:
    """Return the begin and the end of the region of interest, as fractions of the dimension ``axis``."""
    if not op.has(1) or op.opset < 11:
        return 0.0, 1.0
    axes = op.axes_in_order(op.integers("axes") or range(value.rank), value.rank)
    region = op.constant(1, "roi").reshape(-1)
    if axis not in axes or region.size != 2 * len(axes):
        return 0.0, 1.0
    index = axes.index(axis)
    return float(region[index]), float(region[index + len(axes)])


def _bilinear(op: OpContext, value: Value, spacings: Sequence[Spacing], transformation: str) -> Value | None:
    """Return the RESIZE_BILINEAR of an image, ``None`` if that operator computes something else."""
    flags = {"half_pixel": (False, True), "asymmetric": (False, False), "align_corners": (True, False)}
    outer = spacings[:2]
    # Batch and channels must stay: RESIZE_BILINEAR works on rows and columns only.
    if value.rank != 4 or transformation not in flags or any(line.scale != 1.0 for line in outer):
        return None
    lines = spacings[2:]
    # The scale of RESIZE_BILINEAR is the quotient of the sizes, so that a rounded size would differ.
    if any(line.size * line.scale != line.wanted for line in lines) or op.integer("exclude_outside", 0):
        return None
    if transformation == "align_corners" and any(line.wanted < 2 for line in lines):
        return None
    target, quantization = op.held_target, value.quantization
    # A finer output would show the rounding of the result in the scale of the input.
    coarse = quantization is not None and target is not None and target.scale >= quantization.scale
    coarse = coarse and all(_exact_in_integers(line, transformation) for line in lines)
    value = value if coarse else op.builder.plain(value)
    source = op.builder.stored(value, channels_last(4))
    shape = (source.shape[0], lines[0].wanted, lines[1].wanted, source.shape[3])
    made = op.emit(ops.ResizeBilinear(*flags[transformation]), [source], shape, quantization=source.quantization)
    return value.moved(made, channels_last(4))


def _exact_in_integers(line: Spacing, transformation: str) -> bool:
    """Return whether RESIZE_BILINEAR's int8 step between positions is exact; its rounding errors accumulate."""
    less = 1 if transformation == "align_corners" else 0
    return (line.size - less << ops.FRACTION_BITS) % (2 * (line.wanted - less)) == 0


OPERATORS: Mapping[str, Converter] = {
    "DeformConv": _deform_conv,
    "GridSample": _grid_sample,
    "NonMaxSuppression": _select,
    "Resize": _resize,
    "RoiAlign": _roi_align,
    "Upsample": _resize,
}
