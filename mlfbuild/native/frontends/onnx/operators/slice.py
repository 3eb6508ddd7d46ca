"""Slice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators import computed
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, add, multiply
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import GraphError, Tensor, ops
from mlfbuild.native.graph.ops import Steps

_NAMES = ("starts", "ends", "axes", "steps")
"""The inputs after the first one."""


def _slice(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held(0)
    inputs = site.opset >= 10
    unknown = [index for index in range(1, 5) if inputs and site.has(index) and not site.is_constant(index)]
    made = site.declared(unknown[0], _NAMES[unknown[0] - 1], value.rank) if unknown else None
    site.not_read(2)
    if unknown not in ([], [2]):
        assert made is not None
        return (_computed(site, value, made),)
    starts = site.integers("starts", 1 if inputs else None) or ()
    ends = None if unknown else site.integers("ends", 2 if inputs else None) or ()
    axes = site.integers("axes", 3 if inputs else None)
    steps = (site.integers("steps", 4) if inputs else None) or (1,) * len(starts)
    axes = site.axes_in_order(tuple(range(len(starts))) if axes is None else axes, value.rank)
    counts = {len(found) for found in (starts, ends, axes, steps) if found is not None}
    if len(counts) > 1 or 0 in steps:
        raise GraphError(site.node.place, f"has starts {starts}, ends {ends}, axes {axes} and steps {steps}")
    positions = [range(size) for size in value.shape]
    for index, (axis, start, step) in enumerate(zip(axes, starts, steps, strict=True)):
        positions[axis] = positions[axis][start : None if ends is None else ends[index] : step]
        if ends is None and made is not None:  # which determines the ends
            positions[axis] = positions[axis][: made[axis]]
    if made is not None and made != tuple(map(len, positions)):
        raise GraphError(site.node.place, f"cannot select {list(made)} of {value.tensor}")
    return (sliced(site, value, positions),)


def _computed(site: OnnxSite, value: Value, made: tuple[int, ...]) -> Value:
    """Walk along each dimension from a computed start, as far as the shape ``made`` requires."""
    starts = computed.integers(site, 1)
    begins = computed.of_dimensions(site, starts, 3, value.rank, 0)
    steps: list[Tensor | None] = [None] * value.rank
    known = set(site.integers("steps", 4) or ()) if site.is_constant(4) else set()
    if 0 in known:
        raise GraphError(site.node.place, "has a step of 0")
    if site.has(4) and known != {1}:
        steps = computed.of_dimensions(site, computed.integers(site, 4, starts.elements), 3, value.rank, 1)
    for axis, (begin, step) in enumerate(zip(begins, steps, strict=True)):
        size, wanted = value.shape[axis], made[axis]
        if (begin is None and wanted != size) or (step is None and wanted > size):
            raise GraphError(site.node.place, f"cannot select {wanted} of {size} elements of dimension {axis}")
        if begin is None or (step is None and wanted == size):
            continue
        first = computed.bounded(site, computed.from_front(site, begin, size), 0, size - 1)
        walked = computed.places(site, wanted)
        walked = walked if step is None else multiply(site, walked, step)
        value = computed.taken_at(site, value, axis, add(site, walked, first))
    return value


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
