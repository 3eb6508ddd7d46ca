"""Slice."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.conversion import runtime_parameters
from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter, add, multiply
from mlfbuild.native.frontends.onnx.conversion.selection import sliced
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import GraphError, Tensor

_NAMES = ("starts", "ends", "axes", "steps")
"""The inputs after the first one."""


def _slice(op: OpContext) -> tuple[Value, ...]:
    value = op.held(0)
    inputs = op.opset >= 10
    unknown = [index for index in range(1, 5) if inputs and op.has(index) and not op.is_constant(index)]
    made = op.declared(unknown[0], _NAMES[unknown[0] - 1], value.rank) if unknown else None
    op.not_read(2)
    if made is not None and unknown != [2]:
        return (_computed(op, value, made),)
    starts = op.integers("starts", 1 if inputs else None) or ()
    ends = None if unknown else op.integers("ends", 2 if inputs else None) or ()
    axes = op.integers("axes", 3 if inputs else None)
    steps = (op.integers("steps", 4) if inputs else None) or (1,) * len(starts)
    axes = op.axes_in_order(tuple(range(len(starts))) if axes is None else axes, value.rank)
    counts = {len(found) for found in (starts, ends, axes, steps) if found is not None}
    if len(counts) > 1 or 0 in steps:
        raise GraphError(op.node.place, f"has starts {starts}, ends {ends}, axes {axes} and steps {steps}")
    positions = [range(size) for size in value.shape]
    for index, (axis, start, step) in enumerate(zip(axes, starts, steps, strict=True)):
        positions[axis] = positions[axis][start : None if ends is None else ends[index] : step]
        if ends is None and made is not None:  # which determines the ends
            positions[axis] = positions[axis][: made[axis]]
    if made is not None and made != tuple(map(len, positions)):
        raise GraphError(op.node.place, f"cannot select {list(made)} of {value.tensor}")
    return (sliced(op, value, positions),)


def _computed(op: OpContext, value: Value, made: tuple[int, ...]) -> Value:
    """Walk along each dimension from a computed start, as far as the shape ``made`` requires."""
    starts = runtime_parameters.integers(op, 1)
    begins = runtime_parameters.of_dimensions(op, starts, 3, value.rank, 0)
    steps: list[Tensor | None] = [None] * value.rank
    known = set(op.integers("steps", 4) or ()) if op.is_constant(4) else set()
    if 0 in known:
        raise GraphError(op.node.place, "has a step of 0")
    if op.has(4) and known != {1}:
        steps = runtime_parameters.of_dimensions(
            op, runtime_parameters.integers(op, 4, starts.elements), 3, value.rank, 1
        )
    for axis, (begin, step) in enumerate(zip(begins, steps, strict=True)):
        size, wanted = value.shape[axis], made[axis]
        if (begin is None and wanted != size) or (step is None and wanted > size):
            raise GraphError(op.node.place, f"cannot select {wanted} of {size} elements of dimension {axis}")
        if begin is None or (step is None and wanted == size):
            continue
        first = runtime_parameters.bounded(op, runtime_parameters.from_front(op, begin, size), 0, size - 1)
        walked = runtime_parameters.places(op, wanted)
        walked = walked if step is None else multiply(op, walked, step)
        value = runtime_parameters.taken_at(op, value, axis, add(op, walked, first))
    return value


OPERATORS: Mapping[str, Converter] = {
    "Slice": _slice,
}
