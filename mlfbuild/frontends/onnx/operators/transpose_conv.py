"""ConvTranspose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.frontends.onnx.operators.convolution import (
    channel_groups,
    filter_groups,
    filter_shape,
    is_computed,
    joined_channels,
    plus_bias,
    stored_filter,
    two_dimensional,
    weighted_sum,
)
from mlfbuild.frontends.onnx.operators.image import (
    from_image,
    image,
    pair_of,
)
from mlfbuild.frontends.onnx.operators.parameters import LayerParameters, integer_parameters, real_parameters
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import Array, GraphError, Quantization, Tensor, ops
from mlfbuild.graph.bases import Padding, Pair
from mlfbuild.graph.ops import Steps


def _conv_transpose(site: OnnxSite) -> tuple[Value, ...]:
    """Convert ConvTranspose, in integers if it has one group."""
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
    made: list[Tensor | None] = []
    for part, own in zip(channel_groups(site, source, groups), filter_groups(site, filters, groups), strict=True):
        turned = site.moved(ops.Transpose((3, 1, 2, 0)), own, (depth, *own.shape[1:3], own.shape[0]))
        operator = ops.TransposeConv(stride, widened.padding)
        made.append(site.emit(operator, [part, turned, None], (source.shape[0], *widened.size, depth)))
    joined = joined_channels(site, made)
    assert joined is not None
    return from_image(site, value, plus_bias(site, joined))


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


@dataclass(frozen=True)
class _Widened:
    """The height and width that ConvTranspose computes, and the margins that it crops."""

    size: Pair
    padding: Padding


def _widened(site: OnnxSite, source: Tensor, filter_size: Sequence[int], stride: Pair, dimensions: int) -> _Widened:
    extra, mode = pair_of(site, "output_padding", dimensions, 0), site.text("auto_pad", "NOTSET")
    wanted, pads = site.integers("output_shape"), site.integers("pads") or (0,) * (2 * dimensions)
    if len(pads) != 2 * dimensions or (wanted is not None and len(wanted) < dimensions):
        raise GraphError(site.node.place, f"pads {pads} or output_shape {wanted} do not fit {dimensions} dimensions")
    lines = []
    for axis in (0, 1):
        outer = axis - 2 + dimensions  # the index in ONNX's attributes; below 0 for the added height of 1
        full = stride[axis] * (source.shape[1 + axis] - 1) + extra[axis] + filter_size[axis]
        if outer < 0:
            lines.append((full, (0, 0)))
        elif wanted is not None or mode in {"SAME_UPPER", "SAME_LOWER"}:
            size = source.shape[1 + axis] * stride[axis] if wanted is None else wanted[outer - dimensions]
            less, more = (full - size) // 2, (full - size) - (full - size) // 2
            before, after = (less, more) if mode == "SAME_UPPER" else (more, less)
            lines.append((size, (before, max(0, after))))  # negative if the output is larger than all windows
        else:
            pair = (pads[outer], pads[outer + dimensions]) if mode == "NOTSET" else (0, 0)
            lines.append((full - sum(pair), pair))
    (height, rows), (width, columns) = lines
    if min(height, width) < 1:
        raise GraphError(site.node.place, f"makes an image of {height} by {width} pixels")
    return _Widened((height, width), (rows, columns))


OPERATORS: Mapping[str, Converter] = {
    "ConvTranspose": _conv_transpose,
}
