"""SVMClassifier and SVMRegressor: the kernel of a row with each support vector, then weighted sums."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    add,
    binary,
    cast,
    multiply,
    relation,
    select,
    unary,
)
from mlfbuild.native.frontends.onnx.operators.classification import (
    both_classes,
    class_labels,
    greatest_class,
    labelled,
    numbers,
    post_transformed,
    rows,
)
from mlfbuild.native.frontends.onnx.operators.linear import weighted_sums
from mlfbuild.native.frontends.onnx.operators.pow import whole_power
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops

_NO_OFFSETS = np.zeros(0, np.float32)


def _kernel(site: OnnxSite, source: Tensor, count: int) -> Tensor:
    """Return the kernel [rows, count] of each row with each of the ``count`` support vectors."""
    vectors = numbers(site, "support_vectors")
    if count < 1 or vectors.size != count * source.shape[1]:
        raise GraphError(site.node.place, f"{vectors.size} numbers are not {count} support vectors for {source}")
    vectors = vectors.reshape(count, -1)
    kind, parameters = site.text("kernel_type", "LINEAR"), numbers(site, "kernel_params")
    if parameters.size not in {0, 3}:
        raise GraphError(site.node.place, f"has {parameters.size} parameters of the kernel, not 3")
    gamma, offset, degree = parameters.tolist() if parameters.size else (0.0, 0.0, 0.0)
    if kind == "RBF":
        points = site.weights("vectors", vectors)
        distances = site.emit(ops.SquaredDistances(), [source, points], (source.shape[0], count))
        return unary(site, ops.Exp(), multiply(site, distances, -gamma))
    if kind == "LINEAR":
        return weighted_sums(site, source, vectors, _NO_OFFSETS)
    if kind not in {"POLY", "SIGMOID"}:
        raise GraphError(site.node.place, f"has the kernel {kind!r}")
    inner = weighted_sums(
        site, source, (vectors * np.float32(gamma)).astype(np.float32), np.full(count, offset, np.float32)
    )
    if kind == "SIGMOID":
        return unary(site, ops.Tanh(), inner)
    if not 0 <= degree <= _GREATEST_DEGREE:
        raise site.unsupported(f"a polynomial of degree {degree:g} is not supported", "use a degree of at most 16")
    return whole_power(site, inner, int(degree))


_GREATEST_DEGREE = 16


def _regressor(site: OnnxSite) -> tuple[Value, ...]:
    if site.text("post_transform", "NONE") != "NONE":
        raise site.unsupported(f"post_transform {site.text('post_transform', '')} is not supported", "use NONE")
    source, coefficients, offset = rows(site), numbers(site, "coefficients"), numbers(site, "rho")[:1]
    supports = site.integer("n_supports", 0)
    if offset.size != 1:
        raise GraphError(site.node.place, "has no rho")
    features = _kernel(site, source, supports) if supports > 0 else source
    result = weighted_sums(site, features, coefficients.reshape(1, -1), offset)
    if site.integer("one_class", 0):
        result = select(site, relation(site, ops.Greater(), result, 0.0), 1.0, -1.0)
    return (site.made(result),)


def _classifier(site: OnnxSite) -> tuple[Value, ...]:
    counts = site.integers("vectors_per_class") or ()
    return _by_pairs(site, counts) if sum(counts) > 0 else _linear(site)


def _linear(site: OnnxSite) -> tuple[Value, ...]:
    """Without support vectors, each class has coefficients; the offset is the same for all."""
    source, labels, offset = rows(site), class_labels(site), numbers(site, "rho")
    coefficients, classes = numbers(site, "coefficients"), len(labels)
    fits = coefficients.size == classes * source.shape[1]
    if not fits or classes < 2 or not offset.size or (offset.size == 1 and classes > 2):
        raise site.unsupported(
            f"{coefficients.size} coefficients and {offset.size} offsets for {classes} classes are not supported"
        )
    matrix = coefficients.reshape(classes, -1)
    scores = weighted_sums(site, source, matrix, np.full(classes, offset[0], np.float32))
    if offset.size == 1 and classes == 2 and coefficients.min() >= 0:
        raise site.unsupported("two classes without a negative coefficient are not supported")
    made = post_transformed(site, scores, site.text("post_transform", "NONE"))
    return labelled(site, greatest_class(site, scores), labels), site.made(made)


def _by_pairs(site: OnnxSite, counts: tuple[int, ...]) -> tuple[Value, ...]:
    """Every pair of classes has a score, and votes for the first one if it is above 0."""
    labels, classes, total = class_labels(site), len(counts), sum(counts)
    coefficients, offsets = numbers(site, "coefficients"), numbers(site, "rho")
    pairs = list(combinations(range(classes), 2))
    if len(labels) != classes or classes < 2 or min(counts) < 0:
        raise site.unsupported(f"{len(labels)} labels for {classes} classes are not supported")
    if coefficients.size != (classes - 1) * total or offsets.size != len(pairs):
        raise GraphError(site.node.place, f"{coefficients.size} coefficients do not fit {classes} classes")
    if coefficients.min() >= 0:
        raise site.unsupported("an SVM without a negative coefficient is not supported")
    kernel = _kernel(site, rows(site), total)
    scores = weighted_sums(site, kernel, _of_pairs(coefficients.reshape(-1, total), counts, pairs), offsets)
    won = cast(site, relation(site, ops.Greater(), scores, 0.0), DType.FLOAT32)
    positions = greatest_class(site, _votes(site, won, classes, pairs))
    label, transform = labelled(site, positions, labels), site.text("post_transform", "NONE")
    if len(numbers(site, "prob_a")):
        return label, site.made(post_transformed(site, _probabilities(site, scores, classes), transform))
    made = both_classes(site, scores, complement=False) if classes == 2 else scores
    return label, site.made(post_transformed(site, made, transform))


def _of_pairs(coefficients: Array, counts: tuple[int, ...], pairs: list[tuple[int, int]]) -> Array:
    """Return the weight [pairs, vectors] of each support vector, which belongs to one class, in each pair."""
    starts = np.cumsum([0, *counts])
    found = np.zeros((len(pairs), coefficients.shape[1]), np.float32)
    for row, (first, second) in zip(found, pairs, strict=True):
        for own, index in ((first, second - 1), (second, first)):
            part = slice(starts[own], starts[own + 1])
            row[part] = coefficients[index, part]
    return found


def _votes(site: OnnxSite, won: Tensor, classes: int, pairs: list[tuple[int, int]]) -> Tensor:
    """Return the pairs [rows, classes] that each class wins; ``won`` is 1 if the first class of the pair does."""
    weights, start = np.zeros((classes, len(pairs)), np.float32), np.zeros(classes, np.float32)
    for pair, (first, second) in enumerate(pairs):
        weights[first, pair], weights[second, pair] = 1, -1
        start[second] += 1
    return weighted_sums(site, won, weights, start)


_LEAST = 1e-7
"""The least probability of a pair, as in libsvm."""


def _probabilities(site: OnnxSite, scores: Tensor, classes: int) -> Tensor:
    """Return the probability of each class, coupled from those of the pairs."""
    slopes, offsets = (numbers(site, name) for name in ("prob_a", "prob_b"))
    if not len(slopes) == len(offsets) == scores.shape[1]:
        raise GraphError(site.node.place, f"{len(slopes)} and {len(offsets)} sigmoids for {scores.shape[1]} pairs")
    scaled = binary(site, ops.Mul(), scores, site.weights("prob_a", slopes))
    exponents = add(site, scaled, site.weights("prob_b", offsets))
    shares = unary(site, ops.Logistic(), unary(site, ops.Neg(), exponents))
    least = binary(site, ops.Maximum(), shares, site.number("least", _LEAST))
    bounded = binary(site, ops.Minimum(), least, site.number("greatest", 1 - _LEAST))
    return site.emit(ops.PairwiseCoupling(classes), [bounded], (scores.shape[0], classes))


OPERATORS: Mapping[str, Converter] = {
    "SVMClassifier": _classifier,
    "SVMRegressor": _regressor,
}
