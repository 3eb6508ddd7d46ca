"""LinearClassifier and LinearRegressor."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter, cast, relation
from mlfbuild.native.frontends.onnx.conversion.classification import (
    both_classes,
    class_labels,
    greatest_class,
    labelled,
    numbers,
    post_transformed,
    rows,
    weighted_sums,
)
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, GraphError, Tensor, ops


def _scores(op: OpContext, source: Tensor) -> Tensor:
    weights, width = numbers(op, "coefficients"), source.shape[1]
    if weights.size == 0 or weights.size % width:
        raise GraphError(op.node.place, f"{weights.size} coefficients do not fit {source}")
    return weighted_sums(op, source, weights.reshape(-1, width), numbers(op, "intercepts"))


def _classifier(op: OpContext) -> tuple[Value, ...]:
    labels, transform = class_labels(op), op.text("post_transform", "NONE")
    scores = _scores(op, rows(op))
    if scores.shape[1] == 1 and len(labels) == 2:
        scores = both_classes(op, scores, complement=False)
    if scores.shape[1] == 1:
        return _one_class(op, scores, labels, transform)
    if len(labels) not in {0, scores.shape[1]}:
        raise GraphError(op.node.place, f"{len(labels)} labels do not fit {scores.shape[1]} classes")
    made = post_transformed(op, scores, transform)
    positions = greatest_class(op, scores)
    return labelled(op, positions, labels or range(scores.shape[1])), op.made(made)


def _one_class(
    op: OpContext, scores: Tensor, labels: tuple[int, ...] | tuple[str, ...], transform: str
) -> tuple[Value, ...]:
    """Return the label if the only score is at least 0, or 0.5 after a transform, else 0."""
    label = labels[0] if labels else 1
    if isinstance(label, str) or len(labels) > 1:
        raise op.unsupported(f"one score with the labels {list(labels)} is not supported")
    made = post_transformed(op, scores, transform)
    reached = relation(op, ops.GreaterEqual(), made, 0.0 if transform == "NONE" else 0.5)
    positions = cast(op, op.builder.reshaped(reached, scores.shape[:1]), DType.INT32)
    return labelled(op, positions, (0, label)), op.made(made)


def _regressor(op: OpContext) -> tuple[Value, ...]:
    if op.text("post_transform", "NONE") != "NONE":
        raise op.unsupported(f"post_transform {op.text('post_transform', '')} is not supported", "use NONE")
    source = rows(op)
    made = _scores(op, source)
    if made.shape[1] != op.integer("targets", 1):
        raise GraphError(op.node.place, f"has coefficients of {made.shape[1]} targets")
    return (op.made(made),)


OPERATORS: Mapping[str, Converter] = {
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
}
