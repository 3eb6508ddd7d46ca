"""Images and windows, as Conv and the pools see them: two dimensions of pixels, however many ONNX counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlfbuild.frontends.onnx.layout import Value, channels_last
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import GraphError, Tensor, ops
from mlfbuild.graph.ops.window import Padding, Pair

NO_PADDING: Padding = ((0, 0), (0, 0))


def image(site: Site, value: Value) -> Tensor:
    """Return ``value``, batch, channel and one or two dimensions of pixels, as NHWC."""
    if value.rank not in {3, 4}:
        raise site.unsupported(f"an input of {value.rank} dimensions; supported are 1-D and 2-D images")
    tensor = site.builder.stored(value, channels_last(value.rank))
    return tensor if value.rank == 4 else site.builder.reshaped(tensor, (tensor.shape[0], 1, *tensor.shape[1:]))


def from_image(site: Site, value: Value, tensor: Tensor) -> Value:
    """Return the NHWC ``tensor`` as a value with as many dimensions and of the type that ``value`` has."""
    if value.rank == 3:
        tensor = site.builder.reshaped(tensor, (tensor.shape[0], *tensor.shape[2:]))
    return Value(tensor, channels_last(value.rank), value.dtype)


def pad_image(site: Site, source: Tensor, padding: Padding) -> Tensor:
    """Return the NHWC ``source`` with zeros around its pixels."""
    paddings = ((0, 0), *padding, (0, 0))
    shape = [size + sum(pair) for size, pair in zip(source.shape, paddings, strict=True)]
    return site.moved(ops.Pad(paddings), source, shape)


@dataclass(frozen=True)
class Sliding:
    """The attributes of a window; all pairs are (height, width)."""

    filter: Pair
    stride: Pair
    dilation: Pair
    padding: Padding
    declared: Padding
    """The padding that the node asks for; ``padding`` has more of it where positions are rounded up."""
    output: Pair
    """How many positions the window takes."""


def sliding(site: Site, size: Pair, filter_size: tuple[int, ...]) -> Sliding:
    """Read the window's attributes at ``site`` for an image of ``size``; ONNX's Conv and pools share them."""
    dimensions = site.held(0).rank - 2
    filter_size = (1,) * (2 - len(filter_size)) + filter_size
    stride = pair_of(site, "strides", dimensions)
    dilation = pair_of(site, "dilations", dimensions)
    if min(*filter_size, *stride, *dilation) < 1:
        raise GraphError(site.node.place, f"filter {filter_size}, strides {stride} or dilations {dilation} below 1")
    reach = [(filter_size[axis] - 1) * dilation[axis] + 1 for axis in (0, 1)]
    padding = _padding(site, size, reach, stride, dimensions)
    up = site.integer("ceil_mode", 0) != 0
    rows, columns = (_along(size[axis], reach[axis], stride[axis], padding[axis], up=up) for axis in (0, 1))
    return Sliding(
        (filter_size[0], filter_size[1]), stride, dilation, (rows[1], columns[1]), padding, (rows[0], columns[0])
    )


def pair_of(site: Site, name: str, dimensions: int, default: int = 1) -> Pair:
    """Return the attribute ``name`` as (height, width); a one-dimensional image has a height of 1."""
    values = site.integers(name) or (default,) * dimensions
    if len(values) != dimensions:
        raise GraphError(site.node.place, f"attribute {name} has {len(values)} values for {dimensions} dimensions")
    return (values[0], values[1]) if dimensions == 2 else (default, values[0])


def _padding(site: Site, size: Pair, reach: list[int], stride: Pair, dimensions: int) -> Padding:
    mode = site.text("auto_pad", "NOTSET")
    if mode in {"SAME_UPPER", "SAME_LOWER"}:
        lower = mode == "SAME_LOWER"
        return _same(size, reach, stride, 0, lower=lower), _same(size, reach, stride, 1, lower=lower)
    if mode not in {"NOTSET", "VALID"}:
        raise GraphError(site.node.place, f"attribute auto_pad is {mode!r}")
    pads = (site.integers("pads") or (0,) * (2 * dimensions)) if mode == "NOTSET" else (0,) * (2 * dimensions)
    if len(pads) != 2 * dimensions:
        raise GraphError(site.node.place, f"attribute pads has {len(pads)} values for {dimensions} dimensions")
    if min(pads) < 0:
        raise site.unsupported(f"negative padding {list(pads)}")
    ends = tuple(zip(pads[:dimensions], pads[dimensions:], strict=True))
    return (ends[0], ends[1]) if dimensions == 2 else ((0, 0), ends[0])


def _same(size: Pair, reach: list[int], stride: Pair, axis: int, *, lower: bool) -> Pair:
    """Return the padding with which the output has size / stride positions, rounded up."""
    positions = -(-size[axis] // stride[axis])
    total = max(0, (positions - 1) * stride[axis] + reach[axis] - size[axis])
    before = (total + 1) // 2 if lower else total // 2
    return before, total - before


def _along(size: int, reach: int, stride: int, padding: Pair, *, up: bool) -> tuple[int, Pair]:
    """Return (positions, padding) along a dimension, the padding such that the positions round down to themselves."""
    padded = size + sum(padding)
    steps = (padded - reach) / stride
    positions = (math.ceil(steps) if up else math.floor(steps)) + 1
    if up and (positions - 1) * stride >= size + padding[0]:  # a window may not begin in the padding at the end
        positions -= 1
    return positions, (padding[0], max(padding[1], (positions - 1) * stride + reach - size - padding[0]))
