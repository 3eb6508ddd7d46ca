"""Convolutions of images with one or more groups of channels, for Conv and ConvInteger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.image import NO_PADDING, Sliding, from_image, image, pad_image, sliding
from mlfbuild.native.frontends.onnx.conversion.parameters import (
    LayerParameters,
    int8_parts,
    integer_parameters,
    picked_channels,
    real_parameters,
)
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, GraphError, Operator, Quantization, Tensor, ops


def conv(op: OpContext) -> tuple[Value, ...]:
    """Convert a Conv with one or two spatial dimensions."""
    if is_computed(op):
        return (convolved_by_computed(op, op.value(0), op.value(1), biased=True),)
    held, target = op.held(0), op.held_target
    # Input and output must both be quantised, because the sums need both scales.
    if held.quantization is not None and target is not None:
        parameters = integer_parameters(op, axis=0)
        made = None if parameters is None else convolved(op, held, parameters, target)
        if made is not None:
            return (made,)
    return (op.required(convolved(op, op.value(0), real_parameters(op), None)),)


def convolved(op: OpContext, value: Value, parameters: LayerParameters, target: Quantization | None) -> Value | None:
    """Return the convolution, in integers if there is a ``target``; ``None`` if the scales do not allow that.

    The result has the rank of ``value`` and channels last; it is float32 without a ``target``. Raises ``GraphError`` if
    groups and channels do not fit.
    """
    source, weights = image(op, value), two_dimensional(op, value, parameters.weights)
    window = sliding(op, (source.shape[1], source.shape[2]), weights.shape[2:])
    tensor = convolved_image(op, source, replace(parameters, weights=weights), window, target)
    return None if tensor is None else from_image(op, value, tensor)


def convolved_image(
    op: OpContext, source: Tensor, parameters: LayerParameters, window: Sliding, target: Quantization | None
) -> Tensor | None:
    """Do the same as ``convolved``, for an NHWC ``source`` and OIHW weights.

    ``window`` is that of the filter, with padding that may be wider than it. The result is NHWC; ``None`` if the scales
    do not allow integers. Raises ``GraphError`` if groups and channels do not fit.
    """
    groups = op.integer("group", 1)
    # OIHW: the second dimension is the depth of one group.
    outputs, depth = parameters.weights.shape[:2]
    if groups < 1 or depth * groups != source.shape[3] or outputs % groups:
        raise GraphError(op.node.place, f"{groups} groups of {depth} channels do not fit {source}")
    source, window = _padded(op, source, window)
    return _grouped(op, source, parameters, groups, window, target)


def is_computed(op: OpContext) -> bool:
    """Return whether the filter or the bias is computed at run time."""
    return not op.is_constant(1) or (op.has(2) and not op.is_constant(2))


def convolved_by_computed(op: OpContext, value: Value, weights: Value, *, biased: bool) -> Value:
    """Return the convolution with a computed filter, in float32; if ``biased``, input 2 is a bias.

    ``weights`` are in ONNX's order [outputs, inputs of a group, ...]. The result has the rank of ``value`` and channels
    last. Raises ``GraphError`` if shapes do not fit.
    """
    source, shape, groups = image(op, value), filter_shape(op, value, weights), op.integer("group", 1)
    outputs, depth = shape[:2]
    if groups < 1 or depth * groups != source.shape[3] or outputs % groups:
        raise GraphError(op.node.place, f"{groups} groups of {depth} channels do not fit {source}")
    source, window = _padded(op, source, sliding(op, (source.shape[1], source.shape[2]), shape[2:]))
    wanted = (source.shape[0], *window.output)
    # One filter per channel is a depthwise convolution; the graph has an operator for it, as for one group.
    if groups == source.shape[3] > 1:
        filters = stored_filter(op, weights, (1, *shape[2:], outputs), (1, 2, 3, 0))
        depthwise = ops.DepthwiseConv2D(
            window.stride, window.dilation, window.padding, depth_multiplier=outputs // groups
        )
        made = op.emit(depthwise, [source, filters, None], (*wanted, outputs))
        return from_image(op, value, plus_bias(op, made) if biased else made)
    filters = stored_filter(op, weights, (outputs, *shape[2:], depth), (0, 2, 3, 1))
    operator = ops.Conv2D(window.stride, window.dilation, window.padding)
    parts = [
        op.emit(operator, [part, own, None], (*wanted, own.shape[0]))
        for part, own in zip(channel_groups(op, source, groups), filter_groups(op, filters, groups), strict=True)
    ]
    joined = joined_channels(op, parts)
    return from_image(op, value, plus_bias(op, joined) if biased else joined)


def filter_shape(op: OpContext, value: Value, weights: Value) -> tuple[int, int, int, int]:
    """Return the shape of a computed filter of images; a one-dimensional filter gets a height of 1."""
    check_filter(op, value, weights.shape)
    outer, inner, *size = weights.shape
    rows, columns = size if len(size) == 2 else (1, *size)
    return outer, inner, rows, columns


def stored_filter(op: OpContext, weights: Value, shape: Sequence[int], order: tuple[int, ...]) -> Tensor:
    """Return a computed filter as ``shape``, in which ``order`` has the dimensions of a filter of two dimensions."""
    # A one-dimensional filter has no rows: axis 2 of the order is left out and later ones move up.
    axes = order if weights.rank == 4 else tuple(axis - (axis > 2) for axis in order if axis != 2)
    return op.builder.reshaped(op.builder.stored(weights, axes), shape)


def filter_groups(op: OpContext, filters: Tensor, groups: int) -> list[Tensor]:
    """Split computed ``filters`` along their first dimension."""
    if groups > _MOST_GROUPS:
        raise op.unsupported(f"a computed filter of {groups} groups is not supported", "make the filter constant")
    if groups == 1:
        return [filters]
    shape = (filters.shape[0] // groups, *filters.shape[1:])
    return op.outputs(ops.Split(0), filters, [shape] * groups)


# Each group becomes a convolution of its own, with its call and a part of the channels to copy.
_MOST_GROUPS = 64


def plus_bias(op: OpContext, tensor: Tensor) -> Tensor:
    """Return the NHWC ``tensor`` plus input 2, one number per channel, if there is one."""
    if not op.has(2):
        return tensor
    bias = op.tensor(2)
    if bias.shape != tensor.shape[3:]:
        raise GraphError(op.node.place, f"the bias {bias} does not fit {tensor.shape[3]} channels")
    return op.emit(ops.Add(), [tensor, bias], tensor.shape)


def check_filter(op: OpContext, value: Value, shape: tuple[int, ...]) -> None:
    """Raise ``GraphError`` if the filter's rank differs from that of ``value``, or its size from ``kernel_shape``.

    ``shape`` is that of the filter, [outputs, inputs, sizes ...]. The attribute is optional, but must agree if it is
    there.
    """
    if len(shape) != value.rank:
        raise GraphError(op.node.place, f"a filter of {len(shape)} dimensions for an input of {value.rank}")
    size = op.integers("kernel_shape")
    if size is not None and size != shape[2:]:
        raise GraphError(op.node.place, f"attribute kernel_shape is {list(size)}, the filter {list(shape)}")


def two_dimensional(op: OpContext, value: Value, weights: Array) -> Array:
    """Return the filter of an image; a one-dimensional filter gets a height of 1."""
    check_filter(op, value, weights.shape)
    return weights[:, :, np.newaxis] if weights.ndim == 3 else weights


def _padded(op: OpContext, source: Tensor, window: Sliding) -> tuple[Tensor, Sliding]:
    """Pad the image beforehand if the padding is wider than the filter, which operators do not support."""
    if all(max(window.padding[axis]) < window.reach[axis] for axis in (0, 1)):
        # Wider padding would give windows that lie in the padding as a whole, which the kernels exclude.
        return source, window
    return pad_image(op, source, window.padding), replace(window, padding=NO_PADDING)


def _grouped(
    op: OpContext,
    source: Tensor,
    parameters: LayerParameters,
    groups: int,
    window: Sliding,
    target: Quantization | None,
) -> Tensor | None:
    outputs = parameters.weights.shape[0]
    shape = (source.shape[0], *window.output)
    if groups == source.shape[3] > 1:
        return _depthwise(op, source, parameters, window, target)
    parts, made = channel_groups(op, source, groups), []
    for number, part in enumerate(parts):
        own = parameters.channels(slice(outputs // groups * number, outputs // groups * (number + 1)))
        # From OIHW to OHWI, the layout of CONV_2D.
        filters = np.transpose(own.weights, (0, 2, 3, 1))
        made.append(
            weighted_sum(
                op, ops.Conv2D(window.stride, window.dilation, window.padding), own.inputs(op, part, filters),
                (*shape, outputs // groups), target,
            )
        )  # fmt: skip
    return joined_if_complete(op, made)


def _depthwise(
    op: OpContext, source: Tensor, parameters: LayerParameters, window: Sliding, target: Quantization | None
) -> Tensor | None:
    outputs, channels = parameters.weights.shape[0], source.shape[3]
    shape = (source.shape[0], *window.output, outputs)
    # From OIHW to 1HWO, the layout of DEPTHWISE_CONV_2D.
    filters = np.transpose(parameters.weights, (1, 2, 3, 0))
    multiplier = outputs // channels
    wide = _wide_channels(parameters) if multiplier == 1 else np.empty(0, np.int64)
    if 0 < wide.size < channels:
        return _in_two_parts(op, source, parameters, wide, window, target)
    if parameters.scales is not None:
        fitted = _repeated(op, source, filters, window)
        if fitted is None:
            return None
        source, filters, window = fitted
    operator = ops.DepthwiseConv2D(window.stride, window.dilation, window.padding, depth_multiplier=multiplier)
    return weighted_sum(op, operator, parameters.depthwise_inputs(op, source, filters), shape, target)


def _wide_channels(parameters: LayerParameters) -> Array:
    """Return the output channels with a weight that int8 cannot hold without its zero point."""
    if parameters.scales is None:
        return np.empty(0, np.int64)
    limits, rows = np.iinfo(np.int8), parameters.weights.reshape(len(parameters.weights), -1)
    return np.flatnonzero((rows.min(axis=1) < limits.min) | (rows.max(axis=1) > limits.max))


def _in_two_parts(
    op: OpContext,
    source: Tensor,
    parameters: LayerParameters,
    wide: Array,
    window: Sliding,
    target: Quantization | None,
) -> Tensor | None:
    """Return a depthwise convolution with the channels ``wide`` apart, because rows are repeated only for them."""
    parts, order = [np.setdiff1d(np.arange(source.shape[3]), wide), wide], np.empty(source.shape[3], np.int64)
    # ``order`` undoes the separation: channel c of the result is at this place of the joined parts.
    order[np.concatenate(parts)] = np.arange(source.shape[3])
    made = []
    for channels in parts:
        own = parameters.channels(channels)
        made.append(_grouped(op, picked_channels(op, source, channels), own, len(channels), window, target))
    joined = joined_if_complete(op, made)
    return None if joined is None else picked_channels(op, joined, order)


def _repeated(op: OpContext, source: Tensor, filters: Array, window: Sliding) -> tuple[Tensor, Array, Sliding] | None:
    """Return int8 ``filters``; if a weight does not fit, it is the sum of several, over rows that are repeated.

    ``None`` if there are gaps between the rows of the filter.
    """
    parts = int8_parts(filters)
    count = len(parts)
    if count == 1:
        return source, parts[0], window
    # The rows of a dilated filter are not adjacent, so the copies of a row cannot be.
    if window.dilation[0] > 1:
        return None
    # Each row of the image occurs as often as the weight has parts, and so the parts multiply the same pixels.
    indices = op.weights("rows", np.repeat(np.arange(source.shape[1], dtype=np.int32), count))
    shape = (source.shape[0], source.shape[1] * count, *source.shape[2:])
    repeated = op.emit(ops.Gather(1), [source, indices], shape, quantization=source.quantization)
    rows = np.stack(parts, axis=2).reshape(1, -1, *filters.shape[2:])
    (before, after), columns = window.padding
    # Each row occurs `count` times, so the window is as many times as high, and moves as many rows.
    size, stride = (window.filter[0] * count, window.filter[1]), (window.stride[0] * count, window.stride[1])
    return (
        repeated,
        rows,
        replace(window, filter=size, stride=stride, padding=((before * count, after * count), columns)),
    )


def weighted_sum(
    op: OpContext,
    operator: Operator,
    inputs: Sequence[Tensor | None],
    shape: Sequence[int],
    target: Quantization | None,
) -> Tensor | None:
    """Add a node with weights and a bias.

    In integers if there is a ``target``, the quantisation of the result; then ``None`` means that the scales do not
    allow it. ``shape`` is that of the result.
    """
    return op.emit(operator, inputs, shape) if target is None else op.attempt(operator, inputs, shape, target)


def channel_groups(op: OpContext, source: Tensor, groups: int) -> list[Tensor]:
    """Split ``source`` into ``groups`` tensors with equally many channels."""
    if groups == 1:
        return [source]
    return op.outputs(ops.Split(3), source, [(*source.shape[:3], source.shape[3] // groups)] * groups)


def joined_if_complete(op: OpContext, parts: Sequence[Tensor | None]) -> Tensor | None:
    """Concatenate ``parts`` along the channels; ``None`` if there is no integer form of one of them."""
    found = [part for part in parts if part is not None]
    return joined_channels(op, found) if len(found) == len(parts) else None


def joined_channels(op: OpContext, parts: Sequence[Tensor]) -> Tensor:
    """Concatenate ``parts`` along the channels."""
    if len(parts) == 1:
        return parts[0]
    shape = (*parts[0].shape[:3], sum(part.shape[3] for part in parts))
    return op.emit(ops.Concatenation(3), parts, shape, quantization=parts[0].quantization)
