"""Classifiers and regressors of ai.onnx.ml: support vectors, linear models, and their labels.

SVMClassifier and SVMRegressor compute the kernel of a row with each support vector, then weighted sums.

Firmware has no texts: a tensor of texts is a tensor of positions in a list of labels, which the generated header
contains. LabelEncoder maps positions to numbers or to positions in another list; ZipMap changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.classification import (
    both_classes,
    check_not_transformed,
    class_labels,
    greatest_class,
    labelled,
    matches,
    numbers,
    post_transformed,
    rows,
    texts,
    weighted_sums,
)
from mlfbuild.native.frontends.onnx.layout import Value, as_onnx
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops


def _scores(op: OpContext, source: Tensor) -> Tensor:
    weights, width = numbers(op, "coefficients"), source.shape[1]
    if weights.size == 0 or weights.size % width:
        raise GraphError(op.node.place, f"{weights.size} coefficients do not fit {source}")
    return weighted_sums(op, source, weights.reshape(-1, width), numbers(op, "intercepts"))


def _linear_classifier(op: OpContext) -> tuple[Value, ...]:
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
    reached = op.relation(ops.GreaterEqual(), made, 0.0 if transform == "NONE" else 0.5)
    positions = op.cast(op.builder.reshaped(reached, scores.shape[:1]), DType.INT32)
    return labelled(op, positions, (0, label)), op.made(made)


def _linear_regressor(op: OpContext) -> tuple[Value, ...]:
    check_not_transformed(op)
    source = rows(op)
    made = _scores(op, source)
    if made.shape[1] != op.integer("targets", 1):
        raise GraphError(op.node.place, f"has coefficients of {made.shape[1]} targets")
    return (op.made(made),)


_EXACT = 1 << 24
"""The most keys whose positions float32 represents exactly."""


def _label_encoder(op: OpContext) -> tuple[Value, ...]:
    value = op.held(0)
    keys, values, default = _mapping(op, bool(value.labels))
    if len(keys) != len(values) or not len(keys):
        raise GraphError(op.node.place, f"maps {len(keys)} keys to {len(values)} values")
    position = _labels_found(op, value, keys) if value.labels else _numbers_found(op, value.tensor, keys)
    table = [default, *values]
    if isinstance(default, str):
        labels = tuple(dict.fromkeys(map(str, table)))
        places = np.array([labels.index(str(text)) for text in table], np.int64)
        return (Value(_looked_up(op, places, position), value.order, labels=labels),)
    dtype = values.dtype if isinstance(values, np.ndarray) else np.int64
    return (Value(_looked_up(op, np.array(table, dtype), position), value.order),)


def _looked_up(op: OpContext, table: Array, positions: Tensor) -> Tensor:
    return op.emit(ops.Gather(0), [op.weights("values", table), positions], positions.shape)


def _labels_found(op: OpContext, value: Value, keys: Sequence[int | float | str] | Array) -> Tensor:
    """Return 1 + the position in ``keys`` of the text that each element stands for, 0 if it is none of them."""
    known = {str(key): at + 1 for at, key in enumerate(keys)}
    return _looked_up(op, np.array([known.get(label, 0) for label in value.labels], np.int32), value.tensor)


def _numbers_found(op: OpContext, source: Tensor, keys: Sequence[int | float | str] | Array) -> Tensor:
    """Return 1 + the position of each element in ``keys``, 0 if it is none of them; the last of equal keys counts."""
    last = {key: at + 1 for at, key in enumerate(np.asarray(keys).tolist())}
    if len(keys) >= _EXACT or any(key != key for key in last):
        raise op.unsupported("NaN as a key, or more than 16,777,215 keys, are not supported")
    found = op.cast(matches(op, source, np.array(list(last))), DType.FLOAT32)
    rows = op.builder.reshaped(found, (source.elements, len(last)))
    positions = weighted_sums(op, rows, np.array([list(last.values())], np.float32), np.zeros(0, np.float32))
    return op.builder.reshaped(op.cast(positions, DType.INT32), source.shape)


def _mapping(
    op: OpContext, of_texts: bool
) -> tuple[Sequence[int | float | str] | Array, Sequence[int | float | str] | Array, int | float | str]:
    """Return the keys, their values, and the value of everything else."""
    classes = texts(op, "classes_strings")
    if classes:  # version 1, from texts to positions or from positions to texts
        if of_texts:
            return classes, np.arange(len(classes)), op.integer("default_int64", -1)
        return np.arange(len(classes)), classes, op.text("default_string", "_Unused")
    keys, _ = _list(op, "keys")
    values, kind = _list(op, "values")
    tensor = op.node.attributes.get("default_tensor")
    if isinstance(tensor, np.ndarray) and tensor.size == 1:
        return keys, values, tensor.reshape(-1).tolist()[0]
    if kind == "string":
        return keys, values, op.text("default_string", "_Unused")
    return (
        keys,
        values,
        (op.integer("default_int64", -1) if kind == "int64" else op.real_attribute("default_float", -0.0)),
    )


def _list(op: OpContext, side: str) -> tuple[Sequence[int | float | str] | Array, str]:
    tensor = op.node.attributes.get(f"{side}_tensor")
    if isinstance(tensor, np.ndarray):
        if tensor.dtype.kind in "OSU":
            return [text.decode() if isinstance(text, bytes) else str(text) for text in tensor.reshape(-1)], "string"
        if tensor.dtype.kind in "iu":
            return tensor.reshape(-1), "int64"
        if tensor.dtype == np.float32:
            return tensor.reshape(-1), "float"
        raise op.unsupported(f"{side} of {tensor.dtype.name} are not supported", "use float32", "type-unsupported")
    found = texts(op, f"{side}_strings")
    if found:
        return found, "string"
    integers = op.integers(f"{side}_int64s")
    if integers is not None:
        return np.array(integers, np.int64), "int64"
    return numbers(op, f"{side}_floats"), "float"


def _zip_map(op: OpContext) -> tuple[Value, ...]:
    """Return the input: the columns are in the order of the classes, whose labels the header contains."""
    value = op.value(0)
    labels = tuple(map(str, class_labels(op)))
    if value.rank not in {1, 2} or len(labels) != value.shape[-1]:
        raise GraphError(op.node.place, f"names {len(labels)} columns of {value.tensor}")
    return (Value(op.tensor(0), as_onnx(value.rank), labels=labels),)


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
        return op.unary(ops.Exp(), op.multiply(distances, -gamma))
    if kind == "LINEAR":
        return weighted_sums(op, source, vectors, _NO_OFFSETS)
    if kind not in {"POLY", "SIGMOID"}:
        raise GraphError(op.node.place, f"has the kernel {kind!r}")
    # gamma is multiplied into the constants, so that it costs nothing.
    inner = weighted_sums(
        op, source, (vectors * np.float32(gamma)).astype(np.float32), np.full(count, offset, np.float32)
    )
    if kind == "SIGMOID":
        return op.unary(ops.Tanh(), inner)
    if not 0 <= degree <= _GREATEST_DEGREE:
        raise op.unsupported(f"a polynomial of degree {degree:g} is not supported", "use a degree of at most 16")
    return op.whole_power(inner, int(degree))


_GREATEST_DEGREE = 16


def _svm_regressor(op: OpContext) -> tuple[Value, ...]:
    check_not_transformed(op)
    source, coefficients, offset = rows(op), numbers(op, "coefficients"), numbers(op, "rho")[:1]
    supports = op.integer("n_supports", 0)
    if offset.size != 1:
        raise GraphError(op.node.place, "has no rho")
    features = _kernel(op, source, supports) if supports > 0 else source
    result = weighted_sums(op, features, coefficients.reshape(1, -1), offset)
    if op.integer("one_class", 0):
        result = op.select(op.relation(ops.Greater(), result, 0.0), 1.0, -1.0)
    return (op.made(result),)


def _svm_classifier(op: OpContext) -> tuple[Value, ...]:
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
    won = op.cast(op.relation(ops.Greater(), scores, 0.0), DType.FLOAT32)
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
    scaled = op.binary(ops.Mul(), scores, op.weights("prob_a", slopes))
    exponents = op.add(scaled, op.weights("prob_b", offsets))
    shares = op.unary(ops.Logistic(), op.unary(ops.Neg(), exponents))
    least = op.binary(ops.Maximum(), shares, op.number("least", _LEAST))
    bounded = op.binary(ops.Minimum(), least, op.number("greatest", 1 - _LEAST))
    return op.emit(ops.PairwiseCoupling(classes), [bounded], (scores.shape[0], classes))


OPERATORS: Mapping[str, Converter] = {
    "LabelEncoder": _label_encoder,
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "SVMClassifier": _svm_classifier,
    "SVMRegressor": _svm_regressor,
    "ZipMap": _zip_map,
}
