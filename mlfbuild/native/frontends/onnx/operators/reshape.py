"""Reshape, Flatten, Squeeze, Unsqueeze, Identity and Dropout."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import GraphError


def _identity(site: OnnxSite) -> tuple[Value, ...]:
    return (site.held(0),)


def _dropout(site: OnnxSite) -> tuple[Value, ...]:
    """Return the input unchanged and a mask that is true everywhere: only training drops elements."""
    value = site.held(0)
    training = site.has(2) and (not site.is_constant(2) or site.constant(2, "training_mode").any())
    if training and (not site.is_constant(1) or site.constant(1, "ratio").any()):
        raise site.unsupported(
            "training_mode, which drops elements at random, is not supported", "export the network for inference"
        )
    if len(site.node.outputs) < 2 or not site.node.outputs[1]:
        return (value,)
    return value, site.made(site.filled("mask", value.shape, 1, np.bool_))


def _reshape(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held_in_order(0)
    source = value.tensor
    wanted = list(site.integers("shape", 1) or ())
    if not site.integer("allowzero", 0):
        if any(size == 0 and axis >= len(source.shape) for axis, size in enumerate(wanted)):
            raise GraphError(site.node.place, f"the shape {wanted} copies a dimension that {source} does not have")
        wanted = [source.shape[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    if wanted.count(-1) == 1:
        known = math.prod(size for size in wanted if size != -1)
        wanted[wanted.index(-1)] = source.elements // known if known else -1
    if min(wanted, default=1) < 0 or math.prod(wanted) != source.elements:
        raise GraphError(site.node.place, f"{source} cannot have the shape {wanted}")
    return (value.moved(site.builder.reshaped(source, wanted)),)


def _flatten(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held_in_order(0)
    source = value.tensor
    rank = len(source.shape)
    axis = site.integer("axis", 1)
    axis = rank if axis == rank else site.axis(axis, rank)
    shape = (math.prod(source.shape[:axis]), math.prod(source.shape[axis:]))
    return (value.moved(site.builder.reshaped(source, shape)),)


def _squeeze(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held_in_order(0)
    source = value.tensor
    axes = site.integers("axes", 1)
    found = [axis for axis, size in enumerate(source.shape) if size == 1]
    if axes is not None:
        found = list(site.axes(axes, len(source.shape)))
        if any(source.shape[axis] != 1 for axis in found):
            raise GraphError(site.node.place, f"the dimensions {found} of {source} are not all 1")
    shape = [size for axis, size in enumerate(source.shape) if axis not in found]
    return (value.moved(site.builder.reshaped(source, shape)),)


def _unsqueeze(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held_in_order(0)
    source = value.tensor
    axes = site.integers("axes", 1) or ()
    rank = len(source.shape) + len(axes)
    new = site.axes(axes, rank)
    sizes = iter(source.shape)
    return (value.moved(site.builder.reshaped(source, [1 if axis in new else next(sizes) for axis in range(rank)])),)


OPERATORS: Mapping[str, Converter] = {
    "Dropout": _dropout,
    "Flatten": _flatten,
    "Identity": _identity,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
}
