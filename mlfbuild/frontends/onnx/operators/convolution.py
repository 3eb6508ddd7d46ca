"""Conv."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.image import NO_PADDING, Sliding, from_image, image, pad_image, sliding
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import Array, GraphError, Tensor, ops
from mlfbuild.graph.ops.window import Pair


def _conv(site: Site) -> tuple[Value, ...]:
    source, weights = image(site), site.constant(1, "filter")
    if weights.ndim != site.value(0).rank:
        raise GraphError(site.node.place, f"a filter of {weights.ndim} dimensions for an input of {site.value(0).rank}")
    if weights.ndim == 3:
        weights = weights[:, :, np.newaxis]
    groups = site.integer("group", 1)
    outputs, depth = weights.shape[:2]
    if groups < 1 or depth * groups != source.shape[3] or outputs % groups:
        raise GraphError(site.node.place, f"{groups} groups of {depth} channels do not fit {source}")
    window = sliding(site, (source.shape[1], source.shape[2]), weights.shape[2:])
    source, window = _padded(site, source, window)
    bias = site.weights("bias", site.constant(2, "bias").reshape(-1)) if site.has(2) else None
    made = _operator(site, source, weights, groups, window)
    shape = (source.shape[0], *window.output, outputs)
    return (from_image(site, site.emit(made[0], [source, made[1], bias], shape)),)


def _operator(
    site: Site, source: Tensor, weights: Array, groups: int, window: Sliding
) -> tuple[ops.Conv2D | ops.DepthwiseConv2D, Tensor]:
    """Return the operator and its filter, laid out as it wants it."""
    outputs, channels = weights.shape[0], source.shape[3]
    if groups == 1:
        filters = np.transpose(weights, (0, 2, 3, 1))
        return ops.Conv2D(window.stride, window.dilation, window.padding), site.weights("filter", filters)
    if groups != channels:
        raise site.unsupported(f"{groups} groups of {channels // groups} channels; supported are 1 and {channels}")
    filters = np.transpose(weights, (1, 2, 3, 0))
    operator = ops.DepthwiseConv2D(window.stride, window.dilation, window.padding, depth_multiplier=outputs // channels)
    return operator, site.weights("filter", filters)


def _padded(site: Site, source: Tensor, window: Sliding) -> tuple[Tensor, Sliding]:
    """Pad the image beforehand where the padding is wider than the filter, which operators do not take."""
    reach: Pair = tuple((window.filter[axis] - 1) * window.dilation[axis] + 1 for axis in (0, 1))  # type: ignore[assignment] # two of them
    if all(max(window.padding[axis]) < reach[axis] for axis in (0, 1)):
        return source, window
    return pad_image(site, source, window.padding), replace(window, padding=NO_PADDING)


OPERATORS = {"Conv": _conv}
