"""LinearClassifier and LinearRegressor."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, cast, relation
from mlfbuild.native.frontends.onnx.operators.classification import (
    both_classes,
    class_labels,
    greatest_class,
    labelled,
    numbers,
    post_transformed,
    rows,
)
from mlfbuild.native.frontends.onnx.operators.fully_connected import fully_connected
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops


def weighted_sums(site: OnnxSite, source: Tensor, weights: Array, bias: Array) -> Tensor:
    """Return the rows of ``source`` times ``weights`` [outputs, inputs] plus ``bias``, which may be empty."""
    if weights.ndim != 2 or weights.shape[1] != source.shape[1] or bias.size not in {0, weights.shape[0]}:
        raise GraphError(site.node.place, f"{list(weights.shape)} weights and {bias.size} offsets do not fit {source}")
    return fully_connected(site, source, weights, bias if bias.any() else None)


def _scores(site: OnnxSite, source: Tensor) -> Tensor:
    weights, width = numbers(site, "coefficients"), source.shape[1]
    if weights.size == 0 or weights.size % width:
        raise GraphError(site.node.place, f"{weights.size} coefficients do not fit {source}")
    return weighted_sums(site, source, weights.reshape(-1, width), numbers(site, "intercepts"))


def _classifier(site: OnnxSite) -> tuple[Value, ...]:
    labels, transform = class_labels(site), site.text("post_transform", "NONE")
    scores = _scores(site, rows(site))
    if scores.shape[1] == 1 and len(labels) == 2:
        scores = both_classes(site, scores, complement=False)
    if scores.shape[1] == 1:
        return _one_class(site, scores, labels, transform)
    if len(labels) not in {0, scores.shape[1]}:
        raise GraphError(site.node.place, f"{len(labels)} labels do not fit {scores.shape[1]} classes")
    made = post_transformed(site, scores, transform)
    positions = greatest_class(site, scores)
    return labelled(site, positions, labels or range(scores.shape[1])), site.made(made)


def _one_class(
    site: OnnxSite, scores: Tensor, labels: tuple[int, ...] | tuple[str, ...], transform: str
) -> tuple[Value, ...]:
    """Return the label if the only score is at least 0, or 0.5 after a transform, else 0."""
    label = labels[0] if labels else 1
    if isinstance(label, str) or len(labels) > 1:
        raise site.unsupported(f"one score with the labels {list(labels)} is not supported")
    made = post_transformed(site, scores, transform)
    reached = relation(site, ops.GreaterEqual(), made, 0.0 if transform == "NONE" else 0.5)
    positions = cast(site, site.builder.reshaped(reached, scores.shape[:1]), DType.INT32)
    return labelled(site, positions, (0, label)), site.made(made)


def _regressor(site: OnnxSite) -> tuple[Value, ...]:
    if site.text("post_transform", "NONE") != "NONE":
        raise site.unsupported(f"post_transform {site.text('post_transform', '')} is not supported", "use NONE")
    source = rows(site)
    made = _scores(site, source)
    if made.shape[1] != site.integer("targets", 1):
        raise GraphError(site.node.place, f"has coefficients of {made.shape[1]} targets")
    return (site.made(made),)


OPERATORS: Mapping[str, Converter] = {
    "LinearClassifier": _classifier,
    "LinearRegressor": _regressor,
}
