"""AveragePool, MaxPool and their global forms."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

from mlfbuild.frontends.onnx.layout import Value, channels_last
from mlfbuild.frontends.onnx.operators.image import NO_PADDING, Sliding, from_image, image, pad_image, sliding
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import Operator, Tensor, ops
from mlfbuild.graph.ops.slice import Steps


def _average_pool(site: Site) -> tuple[Value, ...]:
    """Average on the scale of the input, if it is held as int8 and the wanted scale is no finer."""
    held, target = site.held(0), site.held_target
    coarse = held.quantization is not None and target is not None and target.scale >= held.quantization.scale
    value = held if coarse else site.value(0)
    source, window = _read(site, value)
    _check_padding(site, window)
    if window.dilation != (1, 1):
        raise site.unsupported(f"dilations {window.dilation}")
    if site.integer("count_include_pad", 0) and window.declared != NO_PADDING:
        source = pad_image(site, source, window.declared)
        rest = [(0, window.padding[axis][1] - window.declared[axis][1]) for axis in (0, 1)]
        window = replace(window, padding=(rest[0], rest[1]))
    return _pooled(site, value, source, window, ops.AveragePool2D(window.filter, window.stride, window.padding))


def _max_pool(site: Site) -> tuple[Value, ...]:
    if len(site.node.outputs) > 1 and site.node.outputs[1]:
        raise site.unsupported("the indices of the greatest elements, output 1")
    value = site.held(0)
    source, window = _read(site, value)
    if window.dilation != (1, 1):
        return (_dilated_max_pool(site, window),)
    _check_padding(site, window)
    return _pooled(site, value, source, window, ops.MaxPool2D(window.filter, window.stride, window.padding))


def _read(site: Site, value: Value) -> tuple[Tensor, Sliding]:
    source = image(site, value)
    return source, sliding(site, (source.shape[1], source.shape[2]), site.integers("kernel_shape") or ())


def _check_padding(site: Site, window: Sliding) -> None:
    if any(max(window.padding[axis]) >= window.filter[axis] for axis in (0, 1)):
        raise site.unsupported(f"padding {window.padding} that is wider than the window {window.filter}")


def _pooled(site: Site, value: Value, source: Tensor, window: Sliding, operator: Operator) -> tuple[Value, ...]:
    shape = (source.shape[0], *window.output, source.shape[3])
    made = site.emit(operator, [source], shape, quantization=source.quantization)
    return (from_image(site, value, made),)


_MOST_TAPS = 64


def _dilated_max_pool(site: Site, window: Sliding) -> Value:
    """Return the greatest of the image seen through each tap of the window; MAX_POOL_2D has no dilation."""
    if math.prod(window.filter) > _MOST_TAPS:
        raise site.unsupported(f"a window {window.filter} with dilations; supported are {_MOST_TAPS} taps")
    value = site.value(0)
    source = image(site, value)
    paddings = ((0, 0), *window.padding, (0, 0))
    padded = [size + sum(pair) for size, pair in zip(source.shape, paddings, strict=True)]
    source = site.emit(ops.PadV2(paddings, -math.inf), [source], padded)
    shape = (source.shape[0], *window.output, source.shape[3])
    greatest: Tensor | None = None
    for tap in itertools.product(*map(range, window.filter)):
        lines = [Steps(tap[axis] * window.dilation[axis], window.stride[axis], window.output[axis]) for axis in (0, 1)]
        steps = (Steps(0, 1, shape[0]), *lines, Steps(0, 1, shape[3]))
        seen = site.emit(ops.StridedSlice(steps), [source], shape)
        greatest = seen if greatest is None else site.emit(ops.Maximum(), [greatest, seen], shape)
    assert greatest is not None
    return from_image(site, value, greatest)


def _global_average_pool(site: Site) -> tuple[Value, ...]:
    held, target = site.held(0), site.held_target
    order = channels_last(held.rank)
    axes = tuple(range(1, held.rank - 1))
    operator = ops.Mean(axes, keep_dims=True)
    shape = operator.output_shape(site.builder.stored(held, order).shape)
    if held.quantization is not None and target is not None:
        made = site.attempt(operator, [site.builder.stored(held, order)], shape, target)
        if made is not None:
            return (site.real(made, order),)
    return (Value(site.emit(operator, [site.builder.stored(site.value(0), order)], shape), order),)


def _global_max_pool(site: Site) -> tuple[Value, ...]:
    value = site.held(0)
    order = channels_last(value.rank)
    source = site.builder.stored(value, order)
    operator = ops.ReduceMax(tuple(range(1, value.rank - 1)), keep_dims=True)
    made = site.emit(operator, [source], operator.output_shape(source.shape), quantization=source.quantization)
    return (value.moved(made, order),)


OPERATORS = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average_pool,
    "GlobalMaxPool": _global_max_pool,
    "MaxPool": _max_pool,
}
