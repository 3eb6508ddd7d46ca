"""Common parts of the classifiers of ai.onnx.ml: rows of features, transforms of scores, labels of classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value, as_onnx
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    add,
    binary,
    cast,
    divide,
    multiply,
    reduced,
    relation,
    select,
    subtract,
    unary,
)
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops

LABELS_OF_INTEGERS = ("classlabels_int64s", "classlabels_ints")
"""The names of this attribute in trees, and in other classifiers."""


def rows(site: OnnxSite) -> Tensor:
    """Return input 0, a matrix with a row per case, as float32."""
    source = site.tensor(0)
    if len(source.shape) != 2:
        raise GraphError(site.node.place, f"takes rows of features, not {source}")
    return cast(site, source, DType.FLOAT32)


def numbers(site: OnnxSite, name: str) -> Array:
    """Return the attribute ``name``, a list of numbers, as float32; an empty array if it is absent."""
    found = site.node.attributes.get(name, ())
    if not isinstance(found, tuple) or not all(isinstance(value, int | float) for value in found):
        raise GraphError(site.node.place, f"attribute {name} is not a list of numbers")
    return np.array(found, np.float32)


def texts(site: OnnxSite, name: str) -> tuple[str, ...]:
    """Return the attribute ``name``, a list of texts; an empty one if it is absent."""
    found = site.node.attributes.get(name, ())
    if not isinstance(found, tuple):
        raise GraphError(site.node.place, f"attribute {name} is not a list of texts")
    return tuple(str(value) for value in found)


def class_labels(site: OnnxSite) -> tuple[int, ...] | tuple[str, ...]:
    """Return the labels of the classes, which are all integers or all texts."""
    integers = next(filter(None, map(site.integers, LABELS_OF_INTEGERS)), ())
    return texts(site, "classlabels_strings") or integers


def post_transformed(site: OnnxSite, scores: Tensor, name: str) -> Tensor:
    """Return ``scores`` [rows, classes] after the transform ``name``."""
    if name == "NONE":
        return scores
    if name == "LOGISTIC":
        return unary(site, ops.Logistic(), scores)
    if name == "SOFTMAX":
        return unary(site, ops.Softmax(1.0), scores)
    if name == "SOFTMAX_ZERO":
        return _softmax_of_nonzero(site, scores)
    raise site.unsupported(f"post_transform {name} is not supported", "use NONE, LOGISTIC, SOFTMAX or SOFTMAX_ZERO")


_NONZERO = 1e-7


def _softmax_of_nonzero(site: OnnxSite, scores: Tensor) -> Tensor:
    """Return the softmax in which scores of 0 stay 0, and 0.5 for each if all are."""
    greatest = reduced(site, ops.ReduceMax, scores, (1,))
    powers = unary(site, ops.Exp(), subtract(site, scores, greatest))
    small = multiply(site, scores, unary(site, ops.Exp(), unary(site, ops.Neg(), greatest)))
    nonzero = relation(site, ops.Greater(), unary(site, ops.Abs(), scores), _NONZERO)
    parts = select(site, nonzero, powers, small)
    total = reduced(site, ops.Sum, parts, (1,))
    nothing = relation(site, ops.Equal(), total, 0.0)
    return select(site, nothing, 0.5, divide(site, parts, select(site, nothing, 1.0, total)))


def greatest_class(site: OnnxSite, scores: Tensor) -> Tensor:
    """Return the position of the first greatest score of each row, int32."""
    return site.emit(ops.ArgMax(1), [scores], scores.shape[:1], DType.INT32)


def labelled(site: OnnxSite, positions: Tensor, labels: Sequence[int] | Sequence[str]) -> Value:
    """Return the label at each of the int32 ``positions``; a text is represented by its position, as int64."""
    wide = cast(site, positions, DType.INT64)
    texts = tuple(label for label in labels if isinstance(label, str))
    if texts:
        return Value(wide, as_onnx(len(wide.shape)), labels=texts)
    values = np.array(labels, np.int64)
    if np.array_equal(values, np.arange(len(values))):
        return site.made(wide)
    table = site.weights("labels", values)
    return site.made(site.emit(ops.Gather(0), [table, positions], positions.shape))


def both_classes(site: OnnxSite, score: Tensor, *, complement: bool) -> Tensor:
    """Return [rows, 2] for the score [rows, 1] of the second class.

    The score of the first one is -score or, if ``complement``, 1 - score.
    """
    signs = site.weights("signs", np.array([[-1, 1]], np.float32))
    both = binary(site, ops.Mul(), score, signs)
    return add(site, both, site.weights("offsets", np.array([[1, 0]], np.float32))) if complement else both
