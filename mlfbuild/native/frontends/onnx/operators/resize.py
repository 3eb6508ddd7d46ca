"""Resize and Upsample."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter, add, multiply, select
from mlfbuild.native.frontends.onnx.conversion.resize_taps import Spacing, coordinates, interpolation, nearest
from mlfbuild.native.frontends.onnx.conversion.runtime_resize import resized
from mlfbuild.native.frontends.onnx.conversion.selection import taken
from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, DType, GraphError, ops
from mlfbuild.native.graph.ops import FRACTION_BITS

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
        total = add(op, total, part.tensor)
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
    return Value(select(op, op.weights("outside", outside.reshape(spread)), number, value.tensor), value.order)


def _share(op: OpContext, value: Value, axis: int, positions: Array, shares: Array) -> Value:
    looked_up = taken(op, value, axis, positions)
    spread = [-1 if other == looked_up.stored(axis) else 1 for other in range(value.rank)]
    share = op.weights("share", shares.astype(np.float32).reshape(spread))
    return Value(multiply(op, looked_up.tensor, share), looked_up.order)


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
    return (line.size - less << FRACTION_BITS) % (2 * (line.wanted - less)) == 0


OPERATORS: Mapping[str, Converter] = {
    "Resize": _resize,
    "Upsample": _resize,
}
