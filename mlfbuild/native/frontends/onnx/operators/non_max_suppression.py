"""NonMaxSuppression with a fixed number of rows, filled with -1."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter, add, multiply, subtract
from mlfbuild.native.frontends.onnx.conversion.selection import sliced
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, GraphError, Tensor, ops

_BOXES, _SCORES, _MOST, _OVERLAP, _LEAST = range(5)


def _select(op: OpContext) -> tuple[Value, ...]:
    """Return a row for each box that is selected, and add their number to the outputs if the file leaves it open."""
    boxes, scores = op.tensor(_BOXES), op.tensor(_SCORES)
    if len(boxes.shape) != 3 or len(scores.shape) != 3 or boxes.shape[2] != 4:
        raise GraphError(op.node.place, f"{boxes} and {scores} are not boxes and scores")
    if op.integer("center_point_box", 0):
        boxes = _corners(op, boxes)
    if op.has(_MOST) and not op.is_constant(_MOST):
        rows: int | None = op.declared(_MOST, "max_output_boxes_per_class", 2)[0]
    else:
        rows = _declared_rows(op)
    count = _greatest_count(op, boxes, scores) if rows is None else rows
    limits = [
        _number(op, _MOST, "max_output", np.array(0, np.int64)),
        _number(op, _OVERLAP, "iou_threshold", np.array(0, np.float32)),
        _number(op, _LEAST, "score_threshold", np.array(-np.inf, np.float32)),
    ]
    made, found = op.builder.emit(
        op.name, ops.NonMaxSuppression(), [boxes, scores, *limits],
        checked(op.name, (count, 3), DType.INT64), checked(op.name, (), DType.INT64),
    )  # fmt: skip
    if rows is None:
        op.builder.report(f"{op.name}_count", op.made(found))
    return (op.made(made),)


def _declared_rows(op: OpContext) -> int | None:
    """Return the number of rows that the file declares."""
    shape = op.shapes[0] if op.shapes else None
    return shape[0] if shape else None


def _greatest_count(op: OpContext, boxes: Tensor, scores: Tensor) -> int:
    """Return the greatest possible number of rows for the constant number of boxes per class."""
    most = max(op.constant_integer(_MOST, "max_output_boxes_per_class"), 0) if op.has(_MOST) else 0
    count = scores.shape[0] * scores.shape[1] * min(most, boxes.shape[1])
    if count == 0:
        raise op.unsupported(
            "max_output_boxes_per_class is 0, so no box is selected",
            "export the network with a greater number",
            "tensor-empty",
        )
    return count


def _number(op: OpContext, index: int, word: str, default: np.ndarray) -> Tensor:
    if not op.has(index):
        return op.weights(word, default)
    tensor = op.tensor(index)
    if tensor.elements != 1 or tensor.dtype.numpy != default.dtype:
        raise GraphError(op.node.place, f"input {index}, {tensor}, is not one number of type {default.dtype.name}")
    return op.builder.reshaped(tensor, ())


def _corners(op: OpContext, boxes: Tensor) -> Tensor:
    """Return boxes of x, y, width and height around a centre as two corners."""
    whole = [range(size) for size in boxes.shape[:2]]
    centre, size = (sliced(op, op.made(boxes), [*whole, part]).tensor for part in (range(2), range(2, 4)))
    half = multiply(op, size, 0.5)
    parts = [subtract(op, centre, half), add(op, centre, half)]
    return op.emit(ops.Concatenation(2), parts, boxes.shape)


OPERATORS: Mapping[str, Converter] = {
    "NonMaxSuppression": _select,
}
