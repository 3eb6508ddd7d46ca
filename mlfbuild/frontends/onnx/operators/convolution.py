"""Conv and ConvTranspose, in groups of channels or in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.image import (
    NO_PADDING,
    Sliding,
    from_image,
    image,
    pad_image,
    pair_of,
    sliding,
)
from mlfbuild.frontends.onnx.operators.parameters import Parameters, integer_parameters, real_parameters
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import Array, GraphError, Operator, Quantization, Tensor, ops
from mlfbuild.graph.ops.window import Padding, Pair


def conv(site: Site) -> tuple[Value, ...]:
    """Convert Conv of one or two dimensions of pixels."""
    held, target = site.held(0), site.held_target
    if held.quantization is not None and target is not None:
        parameters = integer_parameters(site, held.quantization, axis=0)
        made = None if parameters is None else convolved(site, held, parameters, target)
        if made is not None:
            return (made,)
    made = convolved(site, site.value(0), real_parameters(site), None)
    assert made is not None
    return (made,)


def convolved(site: Site, value: Value, parameters: Parameters, target: Quantization | None) -> Value | None:
    """Return the convolution, in integers where there is a ``target``; ``None`` where its scales do not allow them."""
    source, weights = image(site, value), _two_dimensional(site, value, parameters.weights)
    window = sliding(site, (source.shape[1], source.shape[2]), weights.shape[2:])
    tensor = convolved_image(site, source, replace(parameters, weights=weights), window, target)
    return None if tensor is None else from_image(site, value, tensor)


def convolved_image(
    site: Site, source: Tensor, parameters: Parameters, window: Sliding, target: Quantization | None
) -> Tensor | None:
    """As ``convolved``, for an NHWC ``source`` and OIHW weights."""
    groups = site.integer("group", 1)
    outputs, depth = parameters.weights.shape[:2]
    if groups < 1 or depth * groups != source.shape[3] or outputs % groups:
        raise GraphError(site.node.place, f"{groups} groups of {depth} channels do not fit {source}")
    source, window = _padded(site, source, window)
    return _grouped(site, source, parameters, groups, window, target)


def check_filter(site: Site, value: Value, weights: Array) -> None:
    """Raise ``GraphError`` where the filter does not have the dimensions of ``value``, or not the size declared."""
    if weights.ndim != value.rank:
        raise GraphError(site.node.place, f"a filter of {weights.ndim} dimensions for an input of {value.rank}")
    size = site.integers("kernel_shape")
    if size is not None and size != weights.shape[2:]:
        raise GraphError(site.node.place, f"attribute kernel_shape is {list(size)}, the filter {list(weights.shape)}")


def _two_dimensional(site: Site, value: Value, weights: Array) -> Array:
    check_filter(site, value, weights)
    return weights[:, :, np.newaxis] if weights.ndim == 3 else weights


def _padded(site: Site, source: Tensor, window: Sliding) -> tuple[Tensor, Sliding]:
    """Pad the image beforehand where the padding is wider than the filter, which operators do not take."""
    reach = [(window.filter[axis] - 1) * window.dilation[axis] + 1 for axis in (0, 1)]
    if all(max(window.padding[axis]) < reach[axis] for axis in (0, 1)):
        return source, window
    return pad_image(site, source, window.padding), replace(window, padding=NO_PADDING)


def _grouped(
    site: Site, source: Tensor, parameters: Parameters, groups: int, window: Sliding, target: Quantization | None
) -> Tensor | None:
    outputs, channels = parameters.weights.shape[0], source.shape[3]
    shape = (source.shape[0], *window.output)
    if groups == channels:  # of one channel, too
        filters = np.transpose(parameters.weights, (1, 2, 3, 0))
        multiplier = outputs // channels
        if channels > 1:
            operator = ops.DepthwiseConv2D(window.stride, window.dilation, window.padding, depth_multiplier=multiplier)
            return _weighted(site, operator, source, parameters.tensors(site, filters, 3), (*shape, outputs), target)
    parts, made = _groups(site, source, groups), []
    for number, part in enumerate(parts):
        own = parameters.channels(slice(outputs // groups * number, outputs // groups * (number + 1)))
        filters = np.transpose(own.weights, (0, 2, 3, 1))
        made.append(
            _weighted(
                site, ops.Conv2D(window.stride, window.dilation, window.padding), part, own.tensors(site, filters, 0),
                (*shape, outputs // groups), target,
            )
        )  # fmt: skip
    return _joined(site, made)


def _weighted(
    site: Site,
    operator: Operator,
    source: Tensor,
    parameters: tuple[Tensor, Tensor | None],
    shape: Sequence[int],
    target: Quantization | None,
) -> Tensor | None:
    inputs = [source, *parameters]
    return site.emit(operator, inputs, shape) if target is None else site.attempt(operator, inputs, shape, target)


def _groups(site: Site, source: Tensor, groups: int) -> list[Tensor]:
    """Return ``groups`` tensors of as many channels each."""
    if groups == 1:
        return [source]
    return site.outputs(ops.Split(3), source, [(*source.shape[:3], source.shape[3] // groups)] * groups)


def _joined(site: Site, parts: Sequence[Tensor | None]) -> Tensor | None:
    """Return ``parts`` as one tensor along the channels."""
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        return None
    if len(found) == 1:
        return found[0]
    shape = (*found[0].shape[:3], sum(part.shape[3] for part in found))
    return site.emit(ops.Concatenation(3), found, shape, quantization=found[0].quantization)


def _conv_transpose(site: Site) -> tuple[Value, ...]:
    """Conv's opposite; in integers where it has one group."""
    held, target = site.held(0), site.held_target
    if held.quantization is not None and target is not None and site.integer("group", 1) == 1:
        parameters = integer_parameters(site, held.quantization, axis=1)
        made = None if parameters is None else _transposed(site, held, parameters, target)
        if made is not None:
            return (made,)
    made = _transposed(site, site.value(0), real_parameters(site), None)
    assert made is not None
    return (made,)


def _transposed(site: Site, value: Value, parameters: Parameters, target: Quantization | None) -> Value | None:
    source = image(site, value)
    weights = _two_dimensional(site, value, parameters.weights)
    groups = site.integer("group", 1)
    channels, depth = weights.shape[:2]
    if channels != source.shape[3] or groups < 1 or channels % groups:
        raise GraphError(site.node.place, f"{groups} groups of a filter for {channels} channels do not fit {source}")
    stride, dilation = pair_of(site, "strides", value.rank - 2), pair_of(site, "dilations", value.rank - 2)
    spread = _spread(site, weights, dilation)
    widened = _widened(site, source, spread.shape[2:], stride, value.rank - 2)
    made: list[Tensor | None] = []
    for number, part in enumerate(_groups(site, source, groups)):
        rows = slice(channels // groups * number, channels // groups * (number + 1))
        bias = None if parameters.bias is None else parameters.bias[depth * number : depth * (number + 1)]
        own = Parameters(spread[rows], bias, parameters.scales)
        tensors = own.tensors(site, np.transpose(own.weights, (1, 2, 3, 0)), 0)
        operator = ops.TransposeConv(stride, widened.padding)
        made.append(_weighted(site, operator, part, tensors, (source.shape[0], *widened.size, depth), target))
    joined = _joined(site, made)
    return None if joined is None else from_image(site, value, joined)


def _spread(site: Site, weights: Array, dilation: Pair) -> Array:
    """Return OIHW ``weights`` with zeros in between: TRANSPOSE_CONV has no dilation."""
    if min(dilation) < 1 or max(dilation) > _GREATEST_DILATION:
        raise site.unsupported(f"dilations {dilation}")
    sizes = [(size - 1) * step + 1 for size, step in zip(weights.shape[2:], dilation, strict=True)]
    spread = np.zeros((*weights.shape[:2], *sizes), weights.dtype)
    spread[:, :, :: dilation[0], :: dilation[1]] = weights
    return spread


_GREATEST_DILATION = 64


@dataclass(frozen=True)
class _Widened:
    """The height and width that ConvTranspose makes, and what it cuts off around."""

    size: Pair
    padding: Padding


def _widened(site: Site, source: Tensor, filter_size: Sequence[int], stride: Pair, dimensions: int) -> _Widened:
    extra, mode = pair_of(site, "output_padding", dimensions, 0), site.text("auto_pad", "NOTSET")
    wanted, pads = site.integers("output_shape"), site.integers("pads") or (0,) * (2 * dimensions)
    if len(pads) != 2 * dimensions or (wanted is not None and len(wanted) < dimensions):
        raise GraphError(site.node.place, f"pads {pads} or output_shape {wanted} do not fit {dimensions} dimensions")
    lines = []
    for axis in (0, 1):
        outer = axis - 2 + dimensions  # ONNX's own count of the dimensions; below 0 for the height of 1
        full = stride[axis] * (source.shape[1 + axis] - 1) + extra[axis] + filter_size[axis]
        if outer < 0:
            lines.append((full, (0, 0)))
        elif wanted is not None or mode in {"SAME_UPPER", "SAME_LOWER"}:
            size = source.shape[1 + axis] * stride[axis] if wanted is None else wanted[outer - dimensions]
            less, more = (full - size) // 2, (full - size) - (full - size) // 2
            before, after = (less, more) if mode == "SAME_UPPER" else (more, less)
            lines.append((size, (before, max(0, after))))  # below 0 there is more than any window writes
        else:
            pair = (pads[outer], pads[outer + dimensions]) if mode == "NOTSET" else (0, 0)
            lines.append((full - sum(pair), pair))
    (height, rows), (width, columns) = lines
    if min(height, width) < 1:
        raise GraphError(site.node.place, f"makes an image of {height} by {width} pixels")
    return _Widened((height, width), (rows, columns))


OPERATORS = {"ConvTranspose": _conv_transpose}
