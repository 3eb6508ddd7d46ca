"""Images and sliding windows of Conv and the pools, with two spatial dimensions."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import GraphError, Tensor, ops
from mlfbuild.native.graph.bases import Padding, Pair, Window

NO_PADDING: Padding = ((0, 0), (0, 0))


def image(op: OpContext, value: Value) -> Tensor:
    """Return ``value`` [batch, channels, one or two spatial dimensions] as NHWC.

    A sequence becomes an image with a height of 1. Raises ``UnsupportedModelError`` for other ranks than 3 and 4.
    """
    if value.rank not in {3, 4}:
        raise op.unsupported(f"an input of {value.rank} dimensions is not supported", "use a 1-D or 2-D image")
    tensor = op.builder.stored(value, channels_last(value.rank))
    # A sequence is an image with a height of 1.
    return tensor if value.rank == 4 else op.builder.reshaped(tensor, (tensor.shape[0], 1, *tensor.shape[1:]))


def from_image(op: OpContext, value: Value, tensor: Tensor) -> Value:
    """Return the NHWC ``tensor`` as a value with the rank and type of ``value``.

    The reverse of ``image``: a sequence loses its height of 1. The result is stored with channels last.
    """
    if value.rank == 3:
        tensor = op.builder.reshaped(tensor, (tensor.shape[0], *tensor.shape[2:]))
    return Value(tensor, channels_last(value.rank), value.dtype)


def pad_image(op: OpContext, source: Tensor, padding: Padding) -> Tensor:
    """Return the NHWC ``source`` with zeros around its pixels."""
    paddings = ((0, 0), *padding, (0, 0))
    shape = [size + sum(pair) for size, pair in zip(source.shape, paddings, strict=True)]
    return op.moved(ops.Pad(paddings), source, shape)


@dataclass(frozen=True)
class Sliding(Window):
    """A window with what the node says about it."""

    declared: Padding
    """The padding of the node; ``padding`` is larger if the number of positions is rounded up."""
    output: Pair
    """The number of positions of the window."""


@dataclass(frozen=True)
class WindowLine:
    """A window along one spatial dimension."""

    size: int
    filter: int
    stride: int
    dilation: int
    padding: Pair
    declared: Pair
    output: int

    @property
    def reach(self) -> int:
        """The number of pixels from the first to the last that the window covers."""
        return (self.filter - 1) * self.dilation + 1


def untouched(size: int) -> WindowLine:
    """Return a window of one pixel without padding, for a dimension of ``size``."""
    return WindowLine(size, 1, 1, 1, (0, 0), (0, 0), size)


def sliding(op: OpContext, size: Pair, filter_size: tuple[int, ...]) -> Sliding:
    """Return the window that the attributes at ``op`` describe for an image of ``size``.

    ``filter_size`` are the sizes of the filter, of which the last one or two count. The strides, dilations and padding
    are attributes; raises ``GraphError`` if they do not fit.
    """
    dimensions = op.held(0).rank - 2
    found = lines(op, size[2 - dimensions :], filter_size[-dimensions:])
    # A window along one dimension is one along the columns, with a single row.
    return across(*found) if len(found) == 2 else across(untouched(1), *found)


def across(rows: WindowLine, columns: WindowLine) -> Sliding:
    """Combine a window along rows and one along columns."""
    return Sliding(
        (rows.filter, columns.filter), (rows.stride, columns.stride), (rows.dilation, columns.dilation),
        (rows.padding, columns.padding), (rows.declared, columns.declared), (rows.output, columns.output),
    )  # fmt: skip


def lines(op: OpContext, size: tuple[int, ...], filter_size: tuple[int, ...]) -> tuple[WindowLine, ...]:
    """Return the windows along each spatial dimension; raises ``GraphError`` if the attributes do not fit.

    ``size`` and ``filter_size`` have one number for each dimension. Attributes that are absent have ONNX's defaults: 1,
    and no padding.
    """
    count = len(size)
    strides, dilations = values_of(op, "strides", count), values_of(op, "dilations", count)
    if len(filter_size) != count:
        raise GraphError(op.node.place, f"a window {list(filter_size)} for {count} dimensions")
    if min(*filter_size, *strides, *dilations) < 1:
        raise GraphError(
            op.node.place,
            f"filter {list(filter_size)}, strides {list(strides)} or dilations {list(dilations)} below 1",
        )
    reach = [(wide - 1) * dilation + 1 for wide, dilation in zip(filter_size, dilations, strict=True)]
    padding = _padding(op, size, reach, strides)
    up = op.integer("ceil_mode", 0) != 0
    found = []
    for axis in range(count):
        if size[axis] + sum(padding[axis]) < reach[axis]:
            raise GraphError(
                op.node.place,
                f"a window of {reach[axis]} does not fit {size[axis]} pixels with {padding[axis]} beside",
            )
        output, full = _along(size[axis], reach[axis], strides[axis], padding[axis], up=up)
        found.append(
            # ``full`` is the padding with what ceil_mode adds at the end; ``declared`` is that of the file.
            WindowLine(size[axis], filter_size[axis], strides[axis], dilations[axis], full, padding[axis], output)
        )
    return tuple(found)


def pair_of(op: OpContext, name: str, dimensions: int) -> Pair:
    """Return the attribute ``name`` as (height, width); a one-dimensional image has a height of 1."""
    values = values_of(op, name, dimensions)
    return (values[0], values[1]) if dimensions == 2 else (1, values[0])


def values_of(op: OpContext, name: str, dimensions: int, default: int = 1) -> tuple[int, ...]:
    """Return the attribute ``name``, one value for each of ``dimensions``."""
    values = op.integers(name) or (default,) * dimensions
    if len(values) != dimensions:
        raise GraphError(op.node.place, f"attribute {name} has {len(values)} values for {dimensions} dimensions")
    return values


def _padding(op: OpContext, size: tuple[int, ...], reach: list[int], strides: tuple[int, ...]) -> tuple[Pair, ...]:
    mode, dimensions = op.text("auto_pad", "NOTSET"), len(size)
    if mode in {"SAME_UPPER", "SAME_LOWER"}:
        ends = zip(size, reach, strides, strict=True)
        return tuple(_same(*end, lower=mode == "SAME_LOWER") for end in ends)
    if mode not in {"NOTSET", "VALID"}:
        raise GraphError(op.node.place, f"attribute auto_pad is {mode!r}")
    pads = (op.integers("pads") or (0,) * (2 * dimensions)) if mode == "NOTSET" else (0,) * (2 * dimensions)
    if len(pads) != 2 * dimensions:
        raise GraphError(op.node.place, f"attribute pads has {len(pads)} values for {dimensions} dimensions")
    if min(pads) < 0:
        # Negative padding crops, which a window cannot express.
        raise op.unsupported(f"the negative padding {list(pads)} is not supported", "use Slice")
    return tuple(zip(pads[:dimensions], pads[dimensions:], strict=True))


def _same(size: int, reach: int, stride: int, *, lower: bool) -> Pair:
    """Return the padding for which the output has size / stride positions, rounded up."""
    positions = -(-size // stride)
    total = max(0, (positions - 1) * stride + reach - size)
    # The odd pixel: SAME_LOWER puts it before the image, SAME_UPPER after it.
    before = (total + 1) // 2 if lower else total // 2
    return before, total - before


def _along(size: int, reach: int, stride: int, padding: Pair, *, up: bool) -> tuple[int, Pair]:
    """Return (positions, padding) along a dimension, with padding increased so that no rounding is left."""
    padded = size + sum(padding)
    steps = (padded - reach) / stride
    positions = (math.ceil(steps) if up else math.floor(steps)) + 1
    if up and (positions - 1) * stride >= size + padding[0]:  # a window must not begin in the padding at the end
        positions -= 1
    # The last window may need more pixels than the padding declares; more padding takes their place.
    return positions, (padding[0], max(padding[1], (positions - 1) * stride + reach - size - padding[0]))
