"""Conv and ConvTranspose.

On volumes, both are the sum of one for images for each depth of the filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.convolution import (
    channel_groups,
    check_filter,
    conv,
    convolved_image,
    filter_groups,
    filter_shape,
    is_computed,
    joined_channels,
    joined_if_complete,
    plus_bias,
    stored_filter,
    two_dimensional,
    weighted_sum,
)
from mlfbuild.native.frontends.onnx.conversion.image import (
    WindowLine,
    across,
    from_image,
    image,
    lines,
    pair_of,
    values_of,
)
from mlfbuild.native.frontends.onnx.conversion.parameters import LayerParameters, integer_parameters, real_parameters
from mlfbuild.native.frontends.onnx.conversion.selection import sliced
from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Array, GraphError, Quantization, Tensor, ops
from mlfbuild.native.graph.bases import Padding, Pair

_MOST_TAPS = 64


def _conv_of_volumes(op: OpContext, value: Value, parameters: LayerParameters) -> Value:
    check_filter(op, value, parameters.weights.shape)
    depth, rows, columns = lines(op, value.shape[2:], parameters.weights.shape[2:])
    if depth.filter > _MOST_TAPS:
        raise op.unsupported(f"a filter {depth.filter} deep is not supported", f"use a depth of at most {_MOST_TAPS}")
    # The graph has convolutions of images only: each depth of the filter is one of them.
    source = _padded(op, op.builder.stored(value, channels_last(5)), depth)

    def at_depth(tap: int) -> Tensor:
        # The bias is added once, with the first depth.
        own = LayerParameters(parameters.weights[:, :, tap], None if tap else parameters.bias)
        return op.required(convolved_image(op, _slices(op, source, depth, tap), own, across(rows, columns), None))

    total = op.summed(map(at_depth, range(depth.filter)))
    made = op.builder.reshaped(total, (source.shape[0], depth.output, *total.shape[1:]))
    return Value(made, channels_last(5))


def _padded(op: OpContext, source: Tensor, depth: WindowLine) -> Tensor:
    """Return the volume ``source`` [batch, depth, height, width, channels], padded with zeros along the depth."""
    if not any(depth.padding):
        return source
    paddings = ((0, 0), depth.padding, (0, 0), (0, 0), (0, 0))
    shape = [size + sum(pair) for size, pair in zip(source.shape, paddings, strict=True)]
    return op.moved(ops.Pad(paddings), source, shape)


def _slices(op: OpContext, source: Tensor, depth: WindowLine, tap: int) -> Tensor:
    """Return the images that depth ``tap`` of the filter covers, one per output position, joined in the batch."""
    # Depth is moved into the batch, so that one convolution computes all output depths of this tap.
    seen = ops.Steps(tap * depth.dilation, depth.stride, depth.output)
    shape = (source.shape[0], depth.output, *source.shape[2:])
    steps = (ops.Steps(0, 1, shape[0]), seen, *(ops.Steps(0, 1, size) for size in shape[2:]))
    part = op.moved(ops.StridedSlice(steps), source, shape)
    return op.builder.reshaped(part, (shape[0] * shape[1], *shape[2:]))


def _conv_transpose(op: OpContext) -> tuple[Value, ...]:
    """Convert ConvTranspose, in integers if it has one group."""
    if op.held(0).rank == 5:
        return (_of_volumes(op, op.value(0), op.value(1)),)
    if is_computed(op):
        return (_of_computed(op, op.value(0), op.value(1)),)
    held, target = op.held(0), op.held_target
    if held.quantization is not None and target is not None and op.integer("group", 1) == 1:
        parameters = integer_parameters(op, axis=1)
        made = None if parameters is None else _transposed(op, held, parameters, target)
        if made is not None:
            return (made,)
    return (op.required(_transposed(op, op.value(0), real_parameters(op), None)),)


def _of_volumes(op: OpContext, value: Value, weights: Value) -> Value:
    """Convert a ConvTranspose with three spatial dimensions, in float32; its filter may be computed."""
    check_filter(op, value, weights.shape)
    (channels, depth, taps, *size), groups = weights.shape, op.integer("group", 1)
    source = op.builder.stored(value, channels_last(5))
    if channels != source.shape[4] or groups < 1 or channels % groups:
        raise GraphError(op.node.place, f"{groups} groups of a filter for {channels} channels do not fit {source}")
    if taps > _MOST_TAPS:
        raise op.unsupported(f"a filter {taps} deep is not supported", f"use a depth of at most {_MOST_TAPS}")
    (batch, images), stride = source.shape[:2], values_of(op, "strides", 3)
    dilation = values_of(op, "dilations", 3)
    _check_dilation(op, (min(dilation), max(dilation)))
    # Images of all depths are one batch.
    flat = op.builder.reshaped(source, (batch * images, *source.shape[2:]))
    reach = [(wide - 1) * step + 1 for wide, step in zip(weights.shape[2:], dilation, strict=True)]
    (length, margin), rows, columns = _lines(op, source.shape[1:4], reach, stride, 3)
    widened = _Widened((rows[0], columns[0]), (rows[1], columns[1]))

    # The graph has two dimensions: each tap along the depth is a layer over all images, and their results are shifted
    # and added.
    def at_depth(tap: int) -> Tensor:
        ranges = [range(tap, tap + 1) if axis == 2 else range(whole) for axis, whole in enumerate(weights.shape)]
        own = op.builder.stored(sliced(op, weights, ranges), (0, 2, 3, 4, 1))
        filters = op.builder.reshaped(own, (channels, *size, depth))
        filters = _spread_computed(op, filters, (dilation[1], dilation[2]))
        part = _of_images(op, flat, filters, widened, (stride[1], stride[2]))
        apart = _moved_apart(op, op.builder.reshaped(part, (batch, images, *part.shape[1:])), stride[0])
        return _placed(op, apart, tap * dilation[0] - margin[0], length)

    total = op.summed(map(at_depth, range(taps)))
    made = plus_bias(op, op.builder.reshaped(total, (batch * length, *total.shape[2:])))
    return Value(op.builder.reshaped(made, total.shape), channels_last(5))


def _moved_apart(op: OpContext, volume: Tensor, stride: int) -> Tensor:
    """Return the images of ``volume`` [batch, depth, ...] with stride - 1 images of zeros after each."""
    if stride == 1:
        return volume
    batch, depth, *rest = volume.shape
    # Zeros between the images are the stride along the depth.
    wide = op.builder.reshaped(volume, (batch, depth, 1, *rest))
    gaps = ((0, 0), (0, 0), (0, stride - 1), *((0, 0) for _ in rest))
    padded = op.moved(ops.Pad(gaps), wide, (batch, depth, stride, *rest))
    return op.builder.reshaped(padded, (batch, depth * stride, *rest))


def _placed(op: OpContext, volume: Tensor, before: int, length: int) -> Tensor:
    """Return ``length`` images that are zeros except for those of ``volume``, the first of which is at ``before``."""
    batch, depth, *rest = volume.shape
    margins = (max(before, 0), max(length - before - depth, 0))
    if any(margins):
        paddings = ((0, 0), margins, *((0, 0) for _ in rest))
        volume = op.moved(ops.Pad(paddings), volume, (batch, depth + sum(margins), *rest))
    # A negative begin is cropped: images before the first one are left out.
    if volume.shape[1] == length and before >= 0:
        return volume
    shape = (batch, length, *rest)
    steps = (ops.Steps(0, 1, batch), ops.Steps(max(-before, 0), 1, length), *(ops.Steps(0, 1, size) for size in rest))
    return op.moved(ops.StridedSlice(steps), volume, shape)


def _transposed(op: OpContext, value: Value, parameters: LayerParameters, target: Quantization | None) -> Value | None:
    source = image(op, value)
    weights = two_dimensional(op, value, parameters.weights)
    groups = op.integer("group", 1)
    channels, depth = weights.shape[:2]
    if channels != source.shape[3] or groups < 1 or channels % groups:
        raise GraphError(op.node.place, f"{groups} groups of a filter for {channels} channels do not fit {source}")
    stride, dilation = pair_of(op, "strides", value.rank - 2), pair_of(op, "dilations", value.rank - 2)
    spread = _spread(op, weights, dilation)
    # A filter with zeros between its weights has the same products as a dilated one.
    widened = _widened(op, source, spread.shape[2:], stride, value.rank - 2)
    made: list[Tensor | None] = []
    for number, part in enumerate(channel_groups(op, source, groups)):
        rows = slice(channels // groups * number, channels // groups * (number + 1))
        bias = None if parameters.bias is None else parameters.bias[depth * number : depth * (number + 1)]
        own = LayerParameters(spread[rows], bias, parameters.scales)
        inputs = own.inputs(op, part, np.transpose(own.weights, (1, 2, 3, 0)))
        operator = ops.TransposeConv(stride, widened.padding)
        made.append(weighted_sum(op, operator, inputs, (source.shape[0], *widened.size, depth), target))
    joined = joined_if_complete(op, made)
    return None if joined is None else from_image(op, value, joined)


def _of_computed(op: OpContext, value: Value, weights: Value) -> Value:
    """Convert a ConvTranspose whose filter or bias is computed, in float32."""
    source, shape, groups = image(op, value), filter_shape(op, value, weights), op.integer("group", 1)
    channels, depth = shape[:2]
    if channels != source.shape[3] or groups < 1 or channels % groups:
        raise GraphError(op.node.place, f"{groups} groups of a filter for {channels} channels do not fit {source}")
    stride, dilation = pair_of(op, "strides", value.rank - 2), pair_of(op, "dilations", value.rank - 2)
    filters = stored_filter(op, weights, (channels, *shape[2:], depth), (0, 2, 3, 1))
    filters = _spread_computed(op, filters, dilation)
    widened = _widened(op, source, filters.shape[1:3], stride, value.rank - 2)
    return from_image(op, value, plus_bias(op, _of_images(op, source, filters, widened, stride)))


def _of_images(op: OpContext, source: Tensor, filters: Tensor, widened: _Widened, stride: Pair) -> Tensor:
    """Return the result for an NHWC ``source`` and ``filters`` [inputs, rows, columns, outputs], without the bias."""
    made = []
    groups, depth = op.integer("group", 1), filters.shape[3]
    for part, own in zip(channel_groups(op, source, groups), filter_groups(op, filters, groups), strict=True):
        # The graph's filters are OHWI, ONNX's are inputs first.
        turned = op.moved(ops.Transpose((3, 1, 2, 0)), own, (depth, *own.shape[1:3], own.shape[0]))
        operator = ops.TransposeConv(stride, widened.padding)
        made.append(op.emit(operator, [part, turned, None], (source.shape[0], *widened.size, depth)))
    return joined_channels(op, made)


def _spread(op: OpContext, weights: Array, dilation: Pair) -> Array:
    """Return OIHW ``weights`` with zeros inserted, because TRANSPOSE_CONV has no dilation."""
    _check_dilation(op, dilation)
    sizes = [(size - 1) * step + 1 for size, step in zip(weights.shape[2:], dilation, strict=True)]
    op.check_room((*weights.shape[:2], *sizes), weights.itemsize)
    spread = np.zeros((*weights.shape[:2], *sizes), weights.dtype)
    spread[:, :, :: dilation[0], :: dilation[1]] = weights
    return spread


def _spread_computed(op: OpContext, filters: Tensor, dilation: Pair) -> Tensor:
    """Do the same as ``_spread`` for computed filters [inputs, rows, columns, outputs]."""
    _check_dilation(op, dilation)
    if dilation == (1, 1):
        return filters
    inputs, rows, columns, outputs = filters.shape
    apart = op.builder.reshaped(filters, (inputs, rows, 1, columns, 1, outputs))
    gaps = ((0, 0), (0, 0), (0, dilation[0] - 1), (0, 0), (0, dilation[1] - 1), (0, 0))
    padded = op.moved(ops.Pad(gaps), apart, (inputs, rows, dilation[0], columns, dilation[1], outputs))
    whole = op.builder.reshaped(padded, (inputs, rows * dilation[0], columns * dilation[1], outputs))
    shape = (inputs, (rows - 1) * dilation[0] + 1, (columns - 1) * dilation[1] + 1, outputs)
    return op.moved(ops.StridedSlice(tuple(ops.Steps(0, 1, size) for size in shape)), whole, shape)


def _check_dilation(op: OpContext, dilation: Pair) -> None:
    if min(dilation) < 1 or max(dilation) > _GREATEST_DILATION:
        raise op.unsupported(f"the dilations {dilation} are not supported", "use dilations of 1")


_GREATEST_DILATION = 64


@dataclass(frozen=True)
class _Widened:
    """The height and width that ConvTranspose computes, and the margins that it crops."""

    size: Pair
    padding: Padding


def _widened(op: OpContext, source: Tensor, filter_size: Sequence[int], stride: Pair, dimensions: int) -> _Widened:
    (height, rows), (width, columns) = _lines(op, source.shape[1:3], filter_size, stride, dimensions)
    return _Widened((height, width), (rows, columns))


def _lines(
    op: OpContext, size: Sequence[int], filter_size: Sequence[int], stride: Sequence[int], dimensions: int
) -> list[tuple[int, Pair]]:
    """Return the size of the result and the margins that are cropped, for each of ``size``."""
    flat = len(size) - dimensions  # a line is an image with a height of 1
    # Rows and columns that no window covers: they have only the bias.
    extra = (0,) * flat + values_of(op, "output_padding", dimensions, 0)
    mode, wanted = op.text("auto_pad", "NOTSET"), op.integers("output_shape")
    pads = op.integers("pads") or (0,) * (2 * dimensions)
    if len(pads) != 2 * dimensions or (wanted is not None and len(wanted) < dimensions):
        raise GraphError(op.node.place, f"pads {pads} or output_shape {wanted} do not fit {dimensions} dimensions")
    lines = []
    for axis, old in enumerate(size):
        outer = axis - flat  # the index in ONNX's attributes
        # The size without margins: the last window begins at stride * (size - 1).
        full = stride[axis] * (old - 1) + extra[axis] + filter_size[axis]
        if outer < 0:
            lines.append((full, (0, 0)))
        elif wanted is not None or mode in {"SAME_UPPER", "SAME_LOWER"}:
            new = old * stride[axis] if wanted is None else wanted[outer - dimensions]
            less, more = (full - new) // 2, (full - new) - (full - new) // 2
            # As in ONNX's specification of ConvTranspose, where SAME_UPPER has more at the end.
            before, after = (less, more) if mode == "SAME_UPPER" else (more, less)
            lines.append((new, (before, max(0, after))))  # negative if the output is larger than all windows
        else:
            pair = (pads[outer], pads[outer + dimensions]) if mode == "NOTSET" else (0, 0)
            lines.append((full - sum(pair), pair))
    if min(new for new, _ in lines) < 1:
        raise GraphError(op.node.place, f"makes an image of {' by '.join(str(new) for new, _ in lines)} pixels")
    return lines


OPERATORS: Mapping[str, Converter] = {
    "Conv": lambda op: (_conv_of_volumes(op, op.value(0), real_parameters(op)),) if op.held(0).rank == 5 else conv(op),
    "ConvTranspose": _conv_transpose,
}
