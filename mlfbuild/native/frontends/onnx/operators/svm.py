"""SVMClassifier and SVMRegressor: the kernel of a row with each support vector, then weighted sums."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import (
    Converter,
    add,
    binary,
    cast,
    multiply,
    relation,
    select,
    unary,
    whole_power,
)
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
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops

_NO_OFFSETS = np.zeros(0, np.float32)


def _kernel(op: OpContext, source: Tensor, count: int) -> Tensor:
    """Return the kernel [rows, count] of each row with each of the ``count`` support vectors."""
    vectors = numbers(op, "support_vectors")
    if count < 1 or vectors.size != count * source.shape[1]:
        raise GraphError(op.node.place, f"{vectors.size} numbers are not {count} support vectors for {source}")
    vectors = vectors.reshape(count, -1)
    kind, parameters = op.text("kernel_type", "LINEAR"), numbers(op, "kernel_params")
    if parameters.size not in {0, 3}:
        raise GraphError(op.node.place, f"has {parameters.size} parameters of the kernel, not 3")
    gamma, offset, degree = parameters.tolist() if parameters.size else (0.0, 0.0, 0.0)
    if kind == "RBF":
        points = op.weights("vectors", vectors)
        distances = op.emit(ops.SquaredDistances(), [source, points], (source.shape[0], count))
        return unary(op, ops.Exp(), multiply(op, distances, -gamma))
    if kind == "LINEAR":
        return weighted_sums(op, source, vectors, _NO_OFFSETS)
    if kind not in {"POLY", "SIGMOID"}:
        raise GraphError(op.node.place, f"has the kernel {kind!r}")
    # gamma is multiplied into the constants, so that it costs nothing.
    inner = weighted_sums(
        op, source, (vectors * np.float32(gamma)).astype(np.float32), np.full(count, offset, np.float32)
    )
    if kind == "SIGMOID":
        return unary(op, ops.Tanh(), inner)
    if not 0 <= degree <= _GREATEST_DEGREE:
        raise op.unsupported(f"a polynomial of degree {degree:g} is not supported", "use a degree of at most 16")
    return whole_power(op, inner, int(degree))


_GREATEST_DEGREE = 16


def _regressor(op: OpContext) -> tuple[Value, ...]:
    if op.text("post_transform", "NONE") != "NONE":
        raise op.unsupported(f"post_transform {op.text('post_transform', '')} is not supported", "use NONE")
    source, coefficients, offset = rows(op), numbers(op, "coefficients"), numbers(op, "rho")[:1]
    supports = op.integer("n_supports", 0)
    if offset.size != 1:
        raise GraphError(op.node.place, "has no rho")
    features = _kernel(op, source, supports) if supports > 0 else source
    result = weighted_sums(op, features, coefficients.reshape(1, -1), offset)
    if op.integer("one_class", 0):
        result = select(op, relation(op, ops.Greater(), result, 0.0), 1.0, -1.0)
    return (op.made(result),)


def _classifier(op: OpContext) -> tuple[Value, ...]:
    counts = op.integers("vectors_per_class") or ()
    return _by_pairs(op, counts) if sum(counts) > 0 else _linear(op)


def _linear(op: OpContext) -> tuple[Value, ...]:
    """Without support vectors, each class has coefficients; the offset is the same for all."""
    source, labels, offset = rows(op), class_labels(op), numbers(op, "rho")
    coefficients, classes = numbers(op, "coefficients"), len(labels)
    fits = coefficients.size == classes * source.shape[1]
    if not fits or classes < 2 or not offset.size or (offset.size == 1 and classes > 2):
        raise op.unsupported(
            f"{coefficients.size} coefficients and {offset.size} offsets for {classes} classes are not supported"
        )
    matrix = coefficients.reshape(classes, -1)
    scores = weighted_sums(op, source, matrix, np.full(classes, offset[0], np.float32))
    if offset.size == 1 and classes == 2 and coefficients.min() >= 0:
        raise op.unsupported("two classes without a negative coefficient are not supported")
    made = post_transformed(op, scores, op.text("post_transform", "NONE"))
    return labelled(op, greatest_class(op, scores), labels), op.made(made)


def _by_pairs(op: OpContext, counts: tuple[int, ...]) -> tuple[Value, ...]:
    """Every pair of classes has a score, and votes for the first one if it is above 0."""
    labels, classes, total = class_labels(op), len(counts), sum(counts)
    coefficients, offsets = numbers(op, "coefficients"), numbers(op, "rho")
    pairs = list(combinations(range(classes), 2))
    if len(labels) != classes or classes < 2 or min(counts) < 0:
        raise op.unsupported(f"{len(labels)} labels for {classes} classes are not supported")
    if coefficients.size != (classes - 1) * total or offsets.size != len(pairs):
        raise GraphError(op.node.place, f"{coefficients.size} coefficients do not fit {classes} classes")
    # onnxruntime has other scores and labels for such models.
    if coefficients.min() >= 0:
        raise op.unsupported("an SVM without a negative coefficient is not supported")
    kernel = _kernel(op, rows(op), total)
    scores = weighted_sums(op, kernel, _of_pairs(coefficients.reshape(-1, total), counts, pairs), offsets)
    won = cast(op, relation(op, ops.Greater(), scores, 0.0), DType.FLOAT32)
    positions = greatest_class(op, _votes(op, won, classes, pairs))
    label, transform = labelled(op, positions, labels), op.text("post_transform", "NONE")
    if len(numbers(op, "prob_a")):
        return label, op.made(post_transformed(op, _probabilities(op, scores, classes), transform))
    made = both_classes(op, scores, complement=False) if classes == 2 else scores
    return label, op.made(post_transformed(op, made, transform))


def _of_pairs(coefficients: Array, counts: tuple[int, ...], pairs: list[tuple[int, int]]) -> Array:
    """Return the weight [pairs, vectors] of each support vector, which belongs to one class, in each pair."""
    starts = np.cumsum([0, *counts])
    found = np.zeros((len(pairs), coefficients.shape[1]), np.float32)
    for row, (first, second) in zip(found, pairs, strict=True):
        for own, index in ((first, second - 1), (second, first)):
            part = slice(starts[own], starts[own + 1])
            row[part] = coefficients[index, part]
    return found


def _votes(op: OpContext, won: Tensor, classes: int, pairs: list[tuple[int, int]]) -> Tensor:
    """Return the pairs [rows, classes] that each class wins; ``won`` is 1 if the first class of the pair does."""
    weights, start = np.zeros((classes, len(pairs)), np.float32), np.zeros(classes, np.float32)
    for pair, (first, second) in enumerate(pairs):
        # The second class wins if the first does not: 1 - won, whose 1 is in ``start``.
        weights[first, pair], weights[second, pair] = 1, -1
        start[second] += 1
    return weighted_sums(op, won, weights, start)


_LEAST = 1e-7
"""The least probability of a pair, as in libsvm."""


def _probabilities(op: OpContext, scores: Tensor, classes: int) -> Tensor:
    """Return the probability of each class, coupled from those of the pairs."""
    slopes, offsets = (numbers(op, name) for name in ("prob_a", "prob_b"))
    if not len(slopes) == len(offsets) == scores.shape[1]:
        raise GraphError(op.node.place, f"{len(slopes)} and {len(offsets)} sigmoids for {scores.shape[1]} pairs")
    scaled = binary(op, ops.Mul(), scores, op.weights("prob_a", slopes))
    exponents = add(op, scaled, op.weights("prob_b", offsets))
    shares = unary(op, ops.Logistic(), unary(op, ops.Neg(), exponents))
    least = binary(op, ops.Maximum(), shares, op.number("least", _LEAST))
    bounded = binary(op, ops.Minimum(), least, op.number("greatest", 1 - _LEAST))
    return op.emit(ops.PairwiseCoupling(classes), [bounded], (scores.shape[0], classes))


OPERATORS: Mapping[str, Converter] = {
    "SVMClassifier": _classifier,
    "SVMRegressor": _regressor,
}
