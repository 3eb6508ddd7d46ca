"""AveragePool, MaxPool, LpPool and their global forms, with one, two or three spatial dimensions."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion.elementwise import NARROW, as_type
from mlfbuild.native.frontends.onnx.conversion.image import (
    NO_PADDING,
    Sliding,
    WindowLine,
    across,
    from_image,
    image,
    lines,
    pad_image,
    untouched,
)
from mlfbuild.native.frontends.onnx.conversion.selection import check_indices, taken
from mlfbuild.native.frontends.onnx.layout import Value, as_onnx, channels_last
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Operator, Quantization, Tensor, ops
from mlfbuild.native.graph.bases import Pair

Pool = Callable[[OpContext, Tensor, Sliding], Tensor]
"""A pool of NHWC images; three dimensions are pooled by two of them in sequence."""


def _slid(op: OpContext, value: Value, pool: Pool) -> Value:
    """Apply ``pool`` to ``value``; with three spatial dimensions, first to height and width, then to the depth."""
    if value.rank not in {3, 4, 5}:
        raise op.unsupported(
            f"an input of {value.rank} dimensions is not supported", "use an image of one, two or three dimensions"
        )
    windows = lines(op, value.shape[2:], op.integers("kernel_shape") or ())
    # A sequence is pooled as an image with a single row.
    if value.rank != 5:
        window = across(*windows) if len(windows) == 2 else across(untouched(1), *windows)
        return from_image(op, value, pool(op, image(op, value), window))
    # The greatest of the greatest, and the mean of means, are those of the whole window; the graph's pools have two
    # dimensions.
    source = op.builder.stored(value, channels_last(5))
    batch, depth, rows, columns, channels = source.shape
    flat = op.builder.reshaped(source, (batch * depth, rows, columns, channels))
    flat = pool(op, flat, across(*windows[1:]))
    size: Pair = (flat.shape[1], flat.shape[2])
    deep = op.builder.reshaped(flat, (batch, depth, size[0] * size[1], channels))
    deep = pool(op, deep, across(windows[0], untouched(deep.shape[2])))
    made = op.builder.reshaped(deep, (batch, deep.shape[1], *size, channels))
    return Value(made, channels_last(5), value.dtype)


def _average_pool(op: OpContext) -> tuple[Value, ...]:
    """Average in integers if input and output are quantised, except in three dimensions or with dilations."""
    held, target = op.held(0), op.held_target
    if held.quantization is not None and target is not None and held.rank < 5:
        made = _averaged_integers(op, held, target)
        if made is not None:
            return (made,)
    return (_slid(op, op.value(0), _averaged),)


def _averaged_integers(op: OpContext, value: Value, target: Quantization) -> Value | None:
    """Return the means with the scale of ``target``; ``None`` if the kernels do not allow that."""
    windows = lines(op, value.shape[2:], op.integers("kernel_shape") or ())
    window = across(*windows) if len(windows) == 2 else across(untouched(1), *windows)
    # AVERAGE_POOL_2D has no dilation.
    if window.dilation != (1, 1):
        return None
    source, window = _with_counted_padding(op, image(op, value), window)
    _check_padding(op, window)
    operator = ops.AveragePool2D(window.filter, window.stride, window.padding, half_even=True)
    made = op.attempt(operator, [source], (source.shape[0], *window.output, source.shape[3]), target)
    return None if made is None else from_image(op, value, made)


def _averaged(op: OpContext, source: Tensor, window: Sliding) -> Tensor:
    """Return the mean of the pixels in each window, with or without the padding."""
    if window.dilation != (1, 1):
        counted = op.integer("count_include_pad", 0) != 0
        # Counts along both axes multiply, because a window is a rectangle.
        rows, columns = (_counts(source.shape[1 + axis], window, axis, counted=counted) for axis in (0, 1))
        counts = np.outer(rows, columns)
        share = op.weights("share", (1 / counts).astype(np.float32)[np.newaxis, :, :, np.newaxis])
        return op.multiply(_through_taps(op, source, window, 0.0, ops.Add()), share)
    source, window = _with_counted_padding(op, source, window)
    return _pooled(op, source, window, ops.AveragePool2D(window.filter, window.stride, window.padding))


def _with_counted_padding(op: OpContext, source: Tensor, window: Sliding) -> tuple[Tensor, Sliding]:
    """Return the image and the window that pools it; padding that counts becomes pixels."""
    if op.integer("count_include_pad", 0) == 0 or window.declared == NO_PADDING:
        return source, window
    # With ceil_mode, a window may reach beyond the declared padding. What lies there never counts, even if padding
    # does.
    rest = [(0, window.padding[axis][1] - window.declared[axis][1]) for axis in (0, 1)]
    return pad_image(op, source, window.declared), replace(window, padding=(rest[0], rest[1]))


def _counts(size: int, window: Sliding, axis: int, *, counted: bool) -> list[int]:
    """Return the number of pixels in each position of the window along ``axis``; ``counted`` includes padding."""
    before, after = window.declared[axis] if counted else (0, 0)
    first = [position * window.stride[axis] - window.padding[axis][0] for position in range(window.output[axis])]
    taps = [tap * window.dilation[axis] for tap in range(window.filter[axis])]
    # At least 1: the sum of a window of which every tap is outside is 0, and times 1 / 0 that would be NaN.
    return [max(1, sum(-before <= start + tap < size + after for tap in taps)) for start in first]


def _max_pool(op: OpContext) -> tuple[Value, ...]:
    if len(op.node.outputs) > 1 and op.node.outputs[1]:
        return _max_pool_with_positions(op, op.value(0))
    value = op.held(0)
    dilated = set(op.integers("dilations") or (1,)) != {1}
    # Stored integers without a scale are compared as float32, which is exact for 16 bits.
    if value.dtype in NARROW and (dilated or value.tensor.quantization is None):
        return (as_type(op, _slid(op, as_type(op, op.value(0), DType.FLOAT32), _greatest), value.dtype),)
    return (_slid(op, op.value(0) if dilated else value, _greatest),)


def _max_pool_with_positions(op: OpContext, value: Value) -> tuple[Value, ...]:
    """Return the greatest elements and their positions: collect each window in a row with constant positions."""
    wanted = value.dtype
    if wanted in NARROW:
        value = as_type(op, value, DType.FLOAT32)
    tensor = op.builder.stored(value, as_onnx(value.rank))
    if value.rank < 3 or tensor.dtype is not DType.FLOAT32:
        raise op.unsupported(f"positions in {tensor} are not supported", "use an image of float32, int8 or uint8")
    windows = lines(op, value.shape[2:], op.integers("kernel_shape") or ())
    # Each window becomes a row, so that ARG_MAX finds the position.
    images, size = math.prod(value.shape[:2]), math.prod(value.shape[2:])
    shape = (*value.shape[:2], *(line.output for line in windows))
    op.check_room((math.prod(shape), *(line.filter for line in windows)), 3 * np.dtype(np.int64).itemsize)
    seen = _seen(windows)
    taps = seen.shape[1]
    # Positions in ONNX count over the whole tensor, not within one image.
    starts = np.arange(images)[:, np.newaxis, np.newaxis] * size
    places = np.where(seen < 0, tensor.elements, starts + seen).reshape(-1, taps)
    # storage_order 1 counts positions by columns, although the image itself is stored by rows.
    order = np.arange(size).reshape(value.shape[2:], order="F" if op.integer("storage_order", 0) else "C")
    numbers = (starts + order.reshape(-1)[seen]).reshape(-1, taps).astype(np.int32)
    # All places outside of the image read this element.
    nothing = op.weights("nothing", np.array([-np.inf], np.float32))
    row = op.builder.reshaped(tensor, (tensor.elements,))
    extended = op.emit(ops.Concatenation(0), [row, nothing], (tensor.elements + 1,))
    rows = taken(op, op.made(extended), 0, places).tensor
    greatest = op.emit(ops.ReduceMax((1,)), [rows], (len(places),))
    tap = op.emit(ops.ArgMax(1), [rows], (len(places),), DType.INT32)
    at = op.emit(ops.Gather(1, batch_dims=1), [op.weights("positions", numbers), tap], (len(places),))
    wide = op.emit(ops.Cast(), [at], (len(places),), DType.INT64)
    made = op.made(op.builder.reshaped(greatest, shape))
    made = as_type(op, made, wanted) if wanted in NARROW else made
    return made, op.made(op.builder.reshaped(wide, shape))


def _seen(windows: Sequence[WindowLine]) -> Array:
    """Return the flat positions in an image that each window covers [windows, taps], -1 outside of the image."""
    found = np.zeros((1, 1), np.int64)
    for line in windows:
        starts = np.arange(line.output) * line.stride - line.padding[0]
        along = starts[:, np.newaxis] + np.arange(line.filter) * line.dilation
        outside = (found < 0)[:, np.newaxis, :, np.newaxis] | ((along < 0) | (along >= line.size))[:, np.newaxis]
        both = found[:, np.newaxis, :, np.newaxis] * line.size + along[:, np.newaxis]
        found = np.where(outside, -1, both).reshape(found.shape[0] * line.output, -1)
    return found


def _greatest(op: OpContext, source: Tensor, window: Sliding) -> Tensor:
    if window.dilation != (1, 1):
        return _through_taps(op, source, window, -math.inf, ops.Maximum())
    return _pooled(op, source, window, ops.MaxPool2D(window.filter, window.stride, window.padding))


def _check_padding(op: OpContext, window: Sliding) -> None:
    if any(max(window.padding[axis]) >= window.filter[axis] for axis in (0, 1)):
        raise op.unsupported(f"the padding {window.padding} is wider than the window {window.filter}")


def _pooled(op: OpContext, source: Tensor, window: Sliding, operator: Operator) -> Tensor:
    _check_padding(op, window)
    shape = (source.shape[0], *window.output, source.shape[3])
    return op.emit(operator, [source], shape, quantization=source.quantization)


# Each tap is a node of its own, so that a long window would be slow and large code rather than a loop.
_MOST_TAPS = 64


def _through_taps(op: OpContext, source: Tensor, window: Sliding, filling: float, combine: Operator) -> Tensor:
    """Combine the images at each tap of a dilated window, because the graph's pools have no dilation."""
    for axis in (0, 1):
        if window.filter[axis] > _MOST_TAPS:
            raise op.unsupported(
                f"a window {window.filter} with dilations is not supported", f"use at most {_MOST_TAPS} taps"
            )
        paddings = ((0, 0), *(window.padding[axis] if other == axis else (0, 0) for other in (0, 1)), (0, 0))
        if any(map(any, paddings)):
            padded = [size + sum(pair) for size, pair in zip(source.shape, paddings, strict=True)]
            source = op.emit(ops.PadV2(paddings, filling), [source], padded)
        source = _along_taps(op, source, window, axis, combine)
    return source


def _along_taps(op: OpContext, source: Tensor, window: Sliding, axis: int, combine: Operator) -> Tensor:
    shape = [window.output[axis] if other == 1 + axis else size for other, size in enumerate(source.shape)]

    def at_tap(tap: int) -> Tensor:
        seen = ops.Steps(tap * window.dilation[axis], window.stride[axis], window.output[axis])
        steps = tuple(seen if other == 1 + axis else ops.Steps(0, 1, size) for other, size in enumerate(shape))
        return op.emit(ops.StridedSlice(steps), [source], shape)

    return functools.reduce(functools.partial(op.binary, combine), map(at_tap, range(window.filter[axis])))


def _lp_pool(op: OpContext) -> tuple[Value, ...]:
    """Take the p-norm of each window: the p-th root of the sum of p-th powers of magnitudes."""
    value, p = op.value(0), _norm(op)
    # Powers of magnitudes, because an odd power of a negative number would be negative.
    powers = Value(op.whole_power(op.unary(ops.Abs(), value.tensor), p), value.order)
    summed = _slid(op, powers, _summed)
    return (Value(_root(op, summed.tensor, p), summed.order),)


def _norm(op: OpContext) -> int:
    p = op.integer("p", 2)
    if p < 1:
        raise GraphError(op.node.place, f"attribute p is {p}")
    if p > _GREATEST_NORM:
        raise op.unsupported(f"p {p} is not supported", f"use a norm of at most {_GREATEST_NORM}")
    return p


# Powers beyond exceed float32 early: 256**16 is 2**128, which is infinite.
_GREATEST_NORM = 16


def _root(op: OpContext, x: Tensor, p: int) -> Tensor:
    # Square roots are correctly rounded, unlike a power with the exponent 1 / p.
    while p % 2 == 0:
        x, p = op.unary(ops.Sqrt(), x), p // 2
    return x if p == 1 else op.positive_power(x, 1 / p)


def _summed(op: OpContext, source: Tensor, window: Sliding) -> Tensor:
    """Return the sum of the pixels in each window."""
    if window.dilation != (1, 1):
        return _through_taps(op, source, window, 0.0, ops.Add())
    if window.padding != NO_PADDING:
        source, window = pad_image(op, source, window.padding), replace(window, padding=NO_PADDING)
    # The padding is pixels by now, so that every window has the same count, and the mean times that count is the sum.
    mean = _pooled(op, source, window, ops.AveragePool2D(window.filter, window.stride, NO_PADDING))
    return op.multiply(mean, math.prod(window.filter))


def _global_lp_pool(op: OpContext) -> tuple[Value, ...]:
    value, p = op.value(0), _norm(op)
    _check_image(op, value)
    order = channels_last(value.rank)
    powers = op.whole_power(op.unary(ops.Abs(), op.builder.stored(value, order)), p)
    return (Value(_root(op, op.reduced(ops.Sum, powers, range(1, value.rank - 1)), p), order),)


def _local_response_normalization(op: OpContext) -> tuple[Value, ...]:
    """Y = x / (bias + alpha * the mean of squares over nearby channels) ** beta; absent channels are 0."""
    value, size = op.value(0), op.integer("size", 0)
    if size < 1 or value.rank < 2:
        raise GraphError(op.node.place, f"a size of {size} does not fit {value.tensor}")
    order = channels_last(value.rank)
    source = op.builder.stored(value, order)
    channels = source.shape[-1]
    rows = op.builder.reshaped(op.multiply(source, source), (1, source.elements // channels, channels, 1))
    # An even size has one more channel after than before, as ONNX's LRN says.
    near = WindowLine(channels, size, 1, 1, ((size - 1) // 2, size // 2), (0, 0), channels)
    rows = pad_image(op, rows, ((0, 0), near.padding))
    window = across(untouched(rows.shape[1]), replace(near, padding=(0, 0)))
    mean = op.builder.reshaped(
        _pooled(op, rows, window, ops.AveragePool2D((1, size), (1, 1), NO_PADDING)), source.shape
    )
    base = op.add(op.multiply(mean, op.real_attribute("alpha", 1e-4)), op.real_attribute("bias", 1.0))
    return (Value(op.multiply(source, _inverse(op, base, op.real_attribute("beta", 0.75))), order),)


def _inverse(op: OpContext, base: Tensor, beta: float) -> Tensor:
    """Return 1 / base ** beta."""
    # 1 / x**0.75 is 1 / sqrt(x) times the square root of that, without a logarithm and an exponential.
    root = op.unary(ops.Rsqrt(), base)
    if beta == 0.5:
        return root
    return op.multiply(root, op.unary(ops.Sqrt(), root)) if beta == 0.75 else op.positive_power(base, -beta)


def _check_image(op: OpContext, value: Value) -> None:
    if value.rank < 3:
        raise GraphError(op.node.place, f"takes images, not {value.tensor}")


def _global_average_pool(op: OpContext) -> tuple[Value, ...]:
    held, target = op.held(0), op.held_target
    _check_image(op, held)
    order = channels_last(held.rank)
    axes = tuple(range(1, held.rank - 1))
    operator = ops.Mean(axes, keep_dims=True)
    shape = operator.output_shape(op.builder.stored(held, order).shape)
    if held.quantization is not None and target is not None:
        rounded = replace(operator, half_even=True)
        made = op.attempt(rounded, [op.builder.stored(held, order)], shape, target)
        if made is not None:
            return (op.real(made, order),)
    return (Value(op.emit(operator, [op.builder.stored(op.value(0), order)], shape), order),)


def _global_max_pool(op: OpContext) -> tuple[Value, ...]:
    value = op.held(0)
    _check_image(op, value)
    order = channels_last(value.rank)
    source = op.builder.stored(value, order)
    operator = ops.ReduceMax(tuple(range(1, value.rank - 1)), keep_dims=True)
    made = op.emit(operator, [source], operator.output_shape(source.shape), quantization=source.quantization)
    return (value.moved(made, order),)


def _max_unpool(op: OpContext) -> tuple[Value, ...]:
    """Put elements at the positions (input 1) that MaxPool found; more rows and columns of input 2 are zeros."""
    value, places = op.value(0), op.tensor(1)
    _check_image(op, value)
    size = op.integers("kernel_shape") or ()
    count = value.rank - 2
    strides, pads = op.integers("strides") or (1,) * count, op.integers("pads") or (0,) * (2 * count)
    if len(size) != count or len(strides) != count or len(pads) != 2 * count or places.shape != value.shape:
        raise GraphError(op.node.place, f"a window {list(size)} or positions {places} do not fit {value.tensor}")
    check_indices(op, places.dtype.value)
    pairs = zip(value.shape[2:], size, strides, pads[:count], pads[count:], strict=True)
    image = [(old - 1) * stride + wide - before - after for old, wide, stride, before, after in pairs]
    shape = (*value.shape[:2], *image)
    source = op.tensor(0)
    row, flat = op.builder.reshaped(source, (source.elements,)), op.builder.reshaped(places, (source.elements,))
    whole = flat if flat.dtype is DType.INT32 else op.emit(ops.Cast(), [flat], flat.shape, DType.INT32)
    like = checked(op.name, (math.prod(shape),), source.dtype)
    # Absent elements: the kernel begins with zeros, and positions that no maximum has stay 0.
    (made,) = op.builder.emit(op.name, ops.ScatterElements(), [None, whole, row], like)
    made = op.builder.reshaped(made, shape)
    wanted = op.integers("output_shape", 2) or shape
    if len(wanted) != len(shape) or any(new < old for new, old in zip(wanted, shape, strict=True)):
        raise GraphError(op.node.place, f"output_shape {list(wanted)} is less than {list(shape)}")
    if wanted != shape:
        margins = tuple((0, new - old) for new, old in zip(wanted, shape, strict=True))
        made = op.moved(ops.Pad(margins), made, wanted)
    return (op.made(made),)


OPERATORS: Mapping[str, Converter] = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average_pool,
    "GlobalLpPool": _global_lp_pool,
    "GlobalMaxPool": _global_max_pool,
    "LRN": _local_response_normalization,
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
    "MaxUnpool": _max_unpool,
}
