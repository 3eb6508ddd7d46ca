"""NonMaxSuppression with a fixed number of rows, filled with -1."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, add, multiply, subtract
from mlfbuild.native.frontends.onnx.operators.slice import sliced
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, GraphError, Tensor, ops

_BOXES, _SCORES, _MOST, _OVERLAP, _LEAST = range(5)


def _select(site: OnnxSite) -> tuple[Value, ...]:
    """Return a row for each box that is selected, and add their number to the outputs if the file leaves it open."""
    boxes, scores = site.tensor(_BOXES), site.tensor(_SCORES)
    if len(boxes.shape) != 3 or len(scores.shape) != 3 or boxes.shape[2] != 4:
        raise GraphError(site.node.place, f"{boxes} and {scores} are not boxes and scores")
    if site.integer("center_point_box", 0):
        boxes = _corners(site, boxes)
    if site.has(_MOST) and not site.is_constant(_MOST):
        rows: int | None = site.declared(_MOST, "max_output_boxes_per_class", 2)[0]
    else:
        rows = _declared_rows(site)
    count = _greatest_count(site, boxes, scores) if rows is None else rows
    limits = [
        _number(site, _MOST, "max_output", np.array(0, np.int64)),
        _number(site, _OVERLAP, "iou_threshold", np.array(0, np.float32)),
        _number(site, _LEAST, "score_threshold", np.array(-np.inf, np.float32)),
    ]
    made, found = site.builder.emit(
        site.name, ops.NonMaxSuppression(), [boxes, scores, *limits],
        checked(site.name, (count, 3), DType.INT64), checked(site.name, (), DType.INT64),
    )  # fmt: skip
    if rows is None:
        site.builder.report(f"{site.name}_count", site.made(found))
    return (site.made(made),)


def _declared_rows(site: OnnxSite) -> int | None:
    """Return the number of rows that the file declares."""
    shape = site.shapes[0] if site.shapes else None
    return shape[0] if shape else None


def _greatest_count(site: OnnxSite, boxes: Tensor, scores: Tensor) -> int:
    """Return the greatest possible number of rows for the constant number of boxes per class."""
    most = max(site.constant_integer(_MOST, "max_output_boxes_per_class"), 0) if site.has(_MOST) else 0
    count = scores.shape[0] * scores.shape[1] * min(most, boxes.shape[1])
    if count == 0:
        raise site.unsupported(
            "max_output_boxes_per_class is 0, so no box is selected",
            "export the network with a greater number",
            "tensor-empty",
        )
    return count


def _number(site: OnnxSite, index: int, word: str, default: np.ndarray) -> Tensor:
    if not site.has(index):
        return site.weights(word, default)
    tensor = site.tensor(index)
    if tensor.elements != 1 or tensor.dtype.numpy != default.dtype:
        raise GraphError(site.node.place, f"input {index}, {tensor}, is not one number of type {default.dtype.name}")
    return site.builder.reshaped(tensor, ())


def _corners(site: OnnxSite, boxes: Tensor) -> Tensor:
    """Return boxes of x, y, width and height around a centre as two corners."""
    whole = [range(size) for size in boxes.shape[:2]]
    centre, size = (sliced(site, site.made(boxes), [*whole, part]).tensor for part in (range(2), range(2, 4)))
    half = multiply(site, size, 0.5)
    parts = [subtract(site, centre, half), add(site, centre, half)]
    return site.emit(ops.Concatenation(2), parts, boxes.shape)


OPERATORS: Mapping[str, Converter] = {
    "NonMaxSuppression": _select,
}
