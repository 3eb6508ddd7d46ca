"""Compute the operators that exporters apply to shapes in numpy, such as Slice, Concat and Mul of small integer lists.

Most networks compute nothing else from constants, and importing ONNX's own evaluator takes longer than compiling such a
network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.raw_graph import RawNode
from mlfbuild.native.graph import Array

Inputs = Sequence[Array | None]


def computed(node: RawNode, inputs: Inputs) -> Array | None:
    """Return the output of ``node``, ``None`` if ONNX's evaluator must compute it; raises numpy's exceptions."""
    compute = _COMPUTED.get(node.operator)
    return None if compute is None else compute(node, inputs)


def _constant(node: RawNode, _inputs: Inputs) -> Array | None:
    value = node.attributes.get("value")
    return value if isinstance(value, np.ndarray) else None


def _shape(node: RawNode, inputs: Inputs) -> Array | None:
    # ``end`` may be absent, negative or beyond the rank, as in a Python slice.
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    if inputs[0] is None or not isinstance(start, int) or not isinstance(end, int | None):
        return None
    return np.array(inputs[0].shape[start:end], np.int64)


def _gather(node: RawNode, inputs: Inputs) -> Array | None:
    data, positions = inputs
    axis = node.attributes.get("axis", 0)
    if data is None or positions is None or not isinstance(axis, int):
        return None
    return np.asarray(np.take(data, positions, axis))


def _unsqueeze(node: RawNode, inputs: Inputs) -> Array | None:
    axes = _axes(node, inputs)
    return None if axes is None or inputs[0] is None else np.expand_dims(inputs[0], axes)


def _squeeze(node: RawNode, inputs: Inputs) -> Array | None:
    axes = _axes(node, inputs)
    return None if axes is None or inputs[0] is None else np.squeeze(inputs[0], axes)


def _axes(node: RawNode, inputs: Inputs) -> tuple[int, ...] | None:
    """Return the axes, which are an attribute before opset 13 and an input since."""
    if len(inputs) > 1 and inputs[1] is not None:
        return tuple(int(axis) for axis in inputs[1].reshape(-1))
    found = node.attributes.get("axes")
    return tuple(int(axis) for axis in found) if isinstance(found, tuple) else None


def _concat(node: RawNode, inputs: Inputs) -> Array | None:
    axis, parts = node.attributes.get("axis"), [part for part in inputs if part is not None]
    # Different types are a mistake that ONNX's evaluator reports.
    if not isinstance(axis, int) or len({part.dtype for part in parts}) != 1:
        return None
    return np.concatenate(parts, axis)


def _slice(_node: RawNode, inputs: Inputs) -> Array | None:
    if len(inputs) < 3:
        return None
    data, starts, ends, axes, steps = (*inputs, None, None)[:5]
    if data is None or starts is None or ends is None:
        return None
    count = starts.size
    order = range(count) if axes is None else axes.reshape(-1).tolist()
    strides = [1] * count if steps is None else steps.reshape(-1).tolist()
    cut = [slice(None)] * data.ndim
    for axis, start, end, step in zip(
        order, starts.reshape(-1).tolist(), ends.reshape(-1).tolist(), strides, strict=True
    ):
        # A negative step that ends before the first element: in Python, an end of -1 would be the last one.
        cut[axis] = (
            slice(start, end, step) if step > 0 else slice(start, None if end < -data.shape[axis] else end, step)
        )
    return data[tuple(cut)]


def _whole(operator: Callable[[Array, Array], Array]) -> Callable[[RawNode, Inputs], Array | None]:
    """Return a function that applies ``operator`` to integers of one type."""

    def compute(_node: RawNode, inputs: Inputs) -> Array | None:
        first, second = inputs
        # Only signed integers: shapes have no other type, and NumPy would widen mixed ones.
        if first is None or second is None or first.dtype != second.dtype or first.dtype.kind != "i":
            return None
        return np.asarray(operator(first, second))

    return compute


def _divide(_node: RawNode, inputs: Inputs) -> Array | None:
    """Divide integers that are not negative, for which rounding down equals truncation."""
    first, second = inputs
    if first is None or second is None or first.dtype != second.dtype or first.dtype.kind != "i":
        return None
    # All others are left to ONNX's evaluator.
    return np.asarray(first // second) if (first >= 0).all() and (second > 0).all() else None


_COMPUTED: Mapping[str, Callable[[RawNode, Inputs], Array | None]] = {
    "Add": _whole(np.add),
    "Concat": _concat,
    "Constant": _constant,
    "Div": _divide,
    "Gather": _gather,
    "Identity": lambda _node, inputs: inputs[0],
    "Mul": _whole(np.multiply),
    "Shape": _shape,
    "Size": lambda _node, inputs: None if inputs[0] is None else np.array(inputs[0].size, np.int64),
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _whole(np.subtract),
    "Unsqueeze": _unsqueeze,
}
