"""AveragePool, MaxPool and their global forms."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.frontends.onnx.layout import Value, channels_last
from mlfbuild.frontends.onnx.operators.image import NO_PADDING, Sliding, from_image, image, pad_image, sliding
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import Operator, Tensor, ops


def _average_pool(site: Site) -> tuple[Value, ...]:
    source, window = _read(site)
    if site.integer("count_include_pad", 0) and window.declared != NO_PADDING:
        source = pad_image(site, source, window.declared)
        rest = [(0, window.padding[axis][1] - window.declared[axis][1]) for axis in (0, 1)]
        window = replace(window, padding=(rest[0], rest[1]))
    return _pooled(site, source, window, ops.AveragePool2D(window.filter, window.stride, window.padding))


def _max_pool(site: Site) -> tuple[Value, ...]:
    if len(site.node.outputs) > 1 and site.node.outputs[1]:
        raise site.unsupported("the indices of the greatest elements, output 1")
    source, window = _read(site)
    return _pooled(site, source, window, ops.MaxPool2D(window.filter, window.stride, window.padding))


def _read(site: Site) -> tuple[Tensor, Sliding]:
    source = image(site)
    window = sliding(site, (source.shape[1], source.shape[2]), site.integers("kernel_shape") or ())
    if window.dilation != (1, 1):
        raise site.unsupported(f"dilations {window.dilation}")
    if any(max(window.padding[axis]) >= window.filter[axis] for axis in (0, 1)):
        raise site.unsupported(f"padding {window.padding} that is wider than the window {window.filter}")
    return source, window


def _pooled(site: Site, source: Tensor, window: Sliding, operator: Operator) -> tuple[Value, ...]:
    shape = (source.shape[0], *window.output, source.shape[3])
    return (from_image(site, site.emit(operator, [source], shape)),)


def _global_average_pool(site: Site) -> tuple[Value, ...]:
    value = site.value(0)
    order = channels_last(value.rank)
    source = site.builder.stored(value, order)
    axes = tuple(range(1, value.rank - 1))
    shape = (source.shape[0], *(1 for _ in axes), source.shape[-1])
    return (Value(site.emit(ops.Mean(axes, keep_dims=True), [source], shape), order),)


def _global_max_pool(site: Site) -> tuple[Value, ...]:
    source = image(site)
    size = (source.shape[1], source.shape[2])
    shape = (source.shape[0], 1, 1, source.shape[3])
    return (from_image(site, site.emit(ops.MaxPool2D(size), [source], shape)),)


OPERATORS = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global_average_pool,
    "GlobalMaxPool": _global_max_pool,
    "MaxPool": _max_pool,
}
