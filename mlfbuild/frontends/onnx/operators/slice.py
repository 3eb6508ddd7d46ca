"""Slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import GraphError, ops
from mlfbuild.graph.ops import Steps


def _slice(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held(0)
    inputs = site.opset >= 10
    starts = site.integers("starts", 1 if inputs else None) or ()
    ends = site.integers("ends", 2 if inputs else None) or ()
    axes = site.integers("axes", 3 if inputs else None)
    steps = (site.integers("steps", 4) if inputs else None) or (1,) * len(starts)
    axes = site.axes_in_order(tuple(range(len(starts))) if axes is None else axes, value.rank)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise GraphError(site.node.place, f"has starts {starts}, ends {ends}, axes {axes} and steps {steps}")
    positions = [range(size) for size in value.shape]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        positions[axis] = positions[axis][start:end:step]
    return (sliced(site, value, positions),)


def sliced(site: OnnxSite, value: Value, positions: Sequence[range]) -> Value:
    """Return the elements at ``positions`` of each of ONNX's dimensions."""
    if all(found == range(size) for found, size in zip(positions, value.shape, strict=True)):
        return value
    stored = [positions[axis] for axis in value.order]
    shape = [len(found) for found in stored]
    if 0 in shape:
        raise site.unsupported("the result has no elements", code="tensor-empty")
    operator = ops.StridedSlice(tuple(Steps.of(found) for found in stored))
    return value.moved(site.moved(operator, value.tensor, shape), value.order)


OPERATORS: Mapping[str, Converter] = {
    "Slice": _slice,
}
