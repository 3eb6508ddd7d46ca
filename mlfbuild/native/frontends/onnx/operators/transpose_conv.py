"""ConvTranspose; on volumes, it is the sum of one for images for each depth of the filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, add
from mlfbuild.native.frontends.onnx.operators.convolution import (
    channel_groups,
    check_filter,
    filter_groups,
    filter_shape,
    is_computed,
    joined_channels,
    plus_bias,
    stored_filter,
    two_dimensional,
    weighted_sum,
)
from mlfbuild.native.frontends.onnx.operators.image import (
    from_image,
    image,
    pair_of,
    values_of,
)
from mlfbuild.native.frontends.onnx.operators.parameters import LayerParameters, integer_parameters, real_parameters
from mlfbuild.native.frontends.onnx.operators.slice import sliced
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, GraphError, Quantization, Tensor, ops
from mlfbuild.native.graph.bases import Padding, Pair
from mlfbuild.native.graph.ops import Steps


def _conv_transpose(site: OnnxSite) -> tuple[Value, ...]:
    """Convert ConvTranspose, in integers if it has one group."""
    if site.held(0).rank == 5:
        return (_of_volumes(site, site.value(0), site.value(1)),)
    if is_computed(site):
        return (_of_computed(site, site.value(0), site.value(1)),)
    held, target = site.held(0), site.held_target
    if held.quantization is not None and target is not None and site.integer("group", 1) == 1:
        parameters = integer_parameters(site, axis=1)
        made = None if parameters is None else _transposed(site, held, parameters, target)
        if made is not None:
            return (made,)
    made = _transposed(site, site.value(0), real_parameters(site), None)
    assert made is not None
    return (made,)


def _of_volumes(site: OnnxSite, value: Value, weights: Value) -> Value:
    """Convert a ConvTranspose with three spatial dimensions, in float32; its filter may be computed."""
    check_filter(site, value, weights.shape)
    (channels, depth, taps, *size), groups = weights.shape, site.integer("group", 1)
    source = site.builder.stored(value, channels_last(5))
    if channels != source.shape[4] or groups < 1 or channels % groups:
        raise GraphError(site.node.place, f"{groups} groups of a filter for {channels} channels do not fit {source}")
    if taps > _MOST_TAPS:
        raise site.unsupported(f"a filter {taps} deep is not supported", f"use a depth of at most {_MOST_TAPS}")
    (batch, images), stride = source.shape[:2], values_of(site, "strides", 3)
    dilation = values_of(site, "dilations", 3)
    _check_dilation(site, (min(dilation), max(dilation)))
    flat = site.builder.reshaped(source, (batch * images, *source.shape[2:]))
    reach = [(wide - 1) * step + 1 for wide, step in zip(weights.shape[2:], dilation, strict=True)]
    (length, margin), rows, columns = _lines(site, source.shape[1:4], reach, stride, 3)
    widened = _Widened((rows[0], columns[0]), (rows[1], columns[1]))
    total: Tensor | None = None
    for tap in range(taps):
        ranges = [range(tap, tap + 1) if axis == 2 else range(whole) for axis, whole in enumerate(weights.shape)]
        own = site.builder.stored(sliced(site, weights, ranges), (0, 2, 3, 4, 1))
        filters = site.builder.reshaped(own, (channels, *size, depth))
        filters = _spread_computed(site, filters, (dilation[1], dilation[2]))
        part = _of_images(site, flat, filters, widened, (stride[1], stride[2]))
        apart = _moved_apart(site, site.builder.reshaped(part, (batch, images, *part.shape[1:])), stride[0])
        placed = _placed(site, apart, tap * dilation[0] - margin[0], length)
        total = placed if total is None else add(site, total, placed)
    assert total is not None
    made = plus_bias(site, site.builder.reshaped(total, (batch * length, *total.shape[2:])))
    return Value(site.builder.reshaped(made, total.shape), channels_last(5))


def _moved_apart(site: OnnxSite, volume: Tensor, stride: int) -> Tensor:
    """Return the images of ``volume`` [batch, depth, ...] with stride - 1 images of zeros after each."""
    if stride == 1:
        return volume
    batch, depth, *rest = volume.shape
    wide = site.builder.reshaped(volume, (batch, depth, 1, *rest))
    gaps = ((0, 0), (0, 0), (0, stride - 1), *((0, 0) for _ in rest))
    padded = site.moved(ops.Pad(gaps), wide, (batch, depth, stride, *rest))
    return site.builder.reshaped(padded, (batch, depth * stride, *rest))


def _placed(site: OnnxSite, volume: Tensor, before: int, length: int) -> Tensor:
    """Return ``length`` images that are zeros except for those of ``volume``, the first of which is at ``before``."""
    batch, depth, *rest = volume.shape
    margins = (max(before, 0), max(length - before - depth, 0))
    if any(margins):
        paddings = ((0, 0), margins, *((0, 0) for _ in rest))
        volume = site.moved(ops.Pad(paddings), volume, (batch, depth + sum(margins), *rest))
    if volume.shape[1] == length and before >= 0:
        return volume
    shape = (batch, length, *rest)
    steps = (Steps(0, 1, batch), Steps(max(-before, 0), 1, length), *(Steps(0, 1, size) for size in rest))
    return site.moved(ops.StridedSlice(steps), volume, shape)


def _transposed(site: OnnxSite, value: Value, parameters: LayerParameters, target: Quantization | None) -> Value | None:
    source = image(site, value)
    weights = two_dimensional(site, value, parameters.weights)
    groups = site.integer("group", 1)
    channels, depth = weights.shape[:2]
    if channels != source.shape[3] or groups < 1 or channels % groups:
        raise GraphError(site.node.place, f"{groups} groups of a filter for {channels} channels do not fit {source}")
    stride, dilation = pair_of(site, "strides", value.rank - 2), pair_of(site, "dilations", value.rank - 2)
    spread = _spread(site, weights, dilation)
    widened = _widened(site, source, spread.shape[2:], stride, value.rank - 2)
    made: list[Tensor | None] = []
    for number, part in enumerate(channel_groups(site, source, groups)):
        rows = slice(channels // groups * number, channels // groups * (number + 1))
        bias = None if parameters.bias is None else parameters.bias[depth * number : depth * (number + 1)]
        own = LayerParameters(spread[rows], bias, parameters.scales)
        inputs = own.inputs(site, part, np.transpose(own.weights, (1, 2, 3, 0)))
        operator = ops.TransposeConv(stride, widened.padding)
        made.append(weighted_sum(site, operator, inputs, (source.shape[0], *widened.size, depth), target))
    joined = joined_channels(site, made)
    return None if joined is None else from_image(site, value, joined)


def _of_computed(site: OnnxSite, value: Value, weights: Value) -> Value:
    """Convert a ConvTranspose whose filter or bias is computed, in float32."""
    source, shape, groups = image(site, value), filter_shape(site, value, weights), site.integer("group", 1)
    channels, depth = shape[:2]
    if channels != source.shape[3] or groups < 1 or channels % groups:
        raise GraphError(site.node.place, f"{groups} groups of a filter for {channels} channels do not fit {source}")
    stride, dilation = pair_of(site, "strides", value.rank - 2), pair_of(site, "dilations", value.rank - 2)
    filters = stored_filter(site, weights, (channels, *shape[2:], depth), (0, 2, 3, 1))
    filters = _spread_computed(site, filters, dilation)
    widened = _widened(site, source, filters.shape[1:3], stride, value.rank - 2)
    return from_image(site, value, plus_bias(site, _of_images(site, source, filters, widened, stride)))


def _of_images(site: OnnxSite, source: Tensor, filters: Tensor, widened: _Widened, stride: Pair) -> Tensor:
    """Return the result for an NHWC ``source`` and ``filters`` [inputs, rows, columns, outputs], without the bias."""
    made: list[Tensor | None] = []
    groups, depth = site.integer("group", 1), filters.shape[3]
    for part, own in zip(channel_groups(site, source, groups), filter_groups(site, filters, groups), strict=True):
        turned = site.moved(ops.Transpose((3, 1, 2, 0)), own, (depth, *own.shape[1:3], own.shape[0]))
        operator = ops.TransposeConv(stride, widened.padding)
        made.append(site.emit(operator, [part, turned, None], (source.shape[0], *widened.size, depth)))
    joined = joined_channels(site, made)
    assert joined is not None
    return joined


def _spread(site: OnnxSite, weights: Array, dilation: Pair) -> Array:
    """Return OIHW ``weights`` with zeros inserted, because TRANSPOSE_CONV has no dilation."""
    _check_dilation(site, dilation)
    sizes = [(size - 1) * step + 1 for size, step in zip(weights.shape[2:], dilation, strict=True)]
    site.check_room((*weights.shape[:2], *sizes), weights.itemsize)
    spread = np.zeros((*weights.shape[:2], *sizes), weights.dtype)
    spread[:, :, :: dilation[0], :: dilation[1]] = weights
    return spread


def _spread_computed(site: OnnxSite, filters: Tensor, dilation: Pair) -> Tensor:
    """Do the same as ``_spread`` for computed filters [inputs, rows, columns, outputs]."""
    _check_dilation(site, dilation)
    if dilation == (1, 1):
        return filters
    inputs, rows, columns, outputs = filters.shape
    apart = site.builder.reshaped(filters, (inputs, rows, 1, columns, 1, outputs))
    gaps = ((0, 0), (0, 0), (0, dilation[0] - 1), (0, 0), (0, dilation[1] - 1), (0, 0))
    padded = site.moved(ops.Pad(gaps), apart, (inputs, rows, dilation[0], columns, dilation[1], outputs))
    whole = site.builder.reshaped(padded, (inputs, rows * dilation[0], columns * dilation[1], outputs))
    shape = (inputs, (rows - 1) * dilation[0] + 1, (columns - 1) * dilation[1] + 1, outputs)
    return site.moved(ops.StridedSlice(tuple(Steps(0, 1, size) for size in shape)), whole, shape)


def _check_dilation(site: OnnxSite, dilation: Pair) -> None:
    if min(dilation) < 1 or max(dilation) > _GREATEST_DILATION:
        raise site.unsupported(f"the dilations {dilation} are not supported", "use dilations of 1")


_GREATEST_DILATION = 64
_MOST_TAPS = 64


@dataclass(frozen=True)
class _Widened:
    """The height and width that ConvTranspose computes, and the margins that it crops."""

    size: Pair
    padding: Padding


def _widened(site: OnnxSite, source: Tensor, filter_size: Sequence[int], stride: Pair, dimensions: int) -> _Widened:
    (height, rows), (width, columns) = _lines(site, source.shape[1:3], filter_size, stride, dimensions)
    return _Widened((height, width), (rows, columns))


def _lines(
    site: OnnxSite, size: Sequence[int], filter_size: Sequence[int], stride: Sequence[int], dimensions: int
) -> list[tuple[int, Pair]]:
    """Return the size of the result and the margins that are cropped, for each of ``size``."""
    flat = len(size) - dimensions  # a line is an image with a height of 1
    extra = (0,) * flat + values_of(site, "output_padding", dimensions, 0)
    mode, wanted = site.text("auto_pad", "NOTSET"), site.integers("output_shape")
    pads = site.integers("pads") or (0,) * (2 * dimensions)
    if len(pads) != 2 * dimensions or (wanted is not None and len(wanted) < dimensions):
        raise GraphError(site.node.place, f"pads {pads} or output_shape {wanted} do not fit {dimensions} dimensions")
    lines = []
    for axis, old in enumerate(size):
        outer = axis - flat  # the index in ONNX's attributes
        full = stride[axis] * (old - 1) + extra[axis] + filter_size[axis]
        if outer < 0:
            lines.append((full, (0, 0)))
        elif wanted is not None or mode in {"SAME_UPPER", "SAME_LOWER"}:
            new = old * stride[axis] if wanted is None else wanted[outer - dimensions]
            less, more = (full - new) // 2, (full - new) - (full - new) // 2
            before, after = (less, more) if mode == "SAME_UPPER" else (more, less)
            lines.append((new, (before, max(0, after))))  # negative if the output is larger than all windows
        else:
            pair = (pads[outer], pads[outer + dimensions]) if mode == "NOTSET" else (0, 0)
            lines.append((full - sum(pair), pair))
    if min(new for new, _ in lines) < 1:
        raise GraphError(site.node.place, f"makes an image of {' by '.join(str(new) for new, _ in lines)} pixels")
    return lines


OPERATORS: Mapping[str, Converter] = {
    "ConvTranspose": _conv_transpose,
}
