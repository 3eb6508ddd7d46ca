"""Common parts of the classifiers of ai.onnx.ml: rows of features, transforms of scores, labels of classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.parameters import fully_connected
from mlfbuild.native.frontends.onnx.layout import Value, as_onnx
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops

LABELS_OF_INTEGERS = ("classlabels_int64s", "classlabels_ints")
"""The names of this attribute in trees, and in other classifiers."""


def rows(op: OpContext) -> Tensor:
    """Return input 0, a matrix with a row per case, as float32."""
    source = op.tensor(0)
    if len(source.shape) != 2:
        raise GraphError(op.node.place, f"takes rows of features, not {source}")
    return op.cast(source, DType.FLOAT32)


def numbers(op: OpContext, name: str) -> Array:
    """Return the attribute ``name``, a list of numbers, as float32; an empty array if it is absent."""
    found = op.node.attributes.get(name, ())
    if not isinstance(found, tuple) or not all(isinstance(value, int | float) for value in found):
        raise GraphError(op.node.place, f"attribute {name} is not a list of numbers")
    return np.array(found, np.float32)


def texts(op: OpContext, name: str) -> tuple[str, ...]:
    """Return the attribute ``name``, a list of texts; an empty one if it is absent."""
    found = op.node.attributes.get(name, ())
    if not isinstance(found, tuple):
        raise GraphError(op.node.place, f"attribute {name} is not a list of texts")
    return tuple(str(value) for value in found)


def class_labels(op: OpContext) -> tuple[int, ...] | tuple[str, ...]:
    """Return the labels of the classes, which are all integers or all texts."""
    integers = next(filter(None, map(op.integers, LABELS_OF_INTEGERS)), ())
    return texts(op, "classlabels_strings") or integers


def check_not_transformed(op: OpContext) -> None:
    """Raise ``UnsupportedModelError`` if a regressor transforms its results."""
    name = op.text("post_transform", "NONE")
    if name != "NONE":
        raise op.unsupported(f"post_transform {name} is not supported", "use NONE")


def post_transformed(op: OpContext, scores: Tensor, name: str) -> Tensor:
    """Return ``scores`` [rows, classes] after the transform ``name``.

    ``name`` is NONE, LOGISTIC, SOFTMAX or SOFTMAX_ZERO. Raises ``UnsupportedModelError`` for any other.
    """
    if name == "NONE":
        return scores
    if name == "LOGISTIC":
        return op.unary(ops.Logistic(), scores)
    if name == "SOFTMAX":
        return op.unary(ops.Softmax(1.0), scores)
    if name == "SOFTMAX_ZERO":
        return _softmax_of_nonzero(op, scores)
    raise op.unsupported(f"post_transform {name} is not supported", "use NONE, LOGISTIC, SOFTMAX or SOFTMAX_ZERO")


# onnxruntime's limit, below which a score counts as 0.
_NONZERO = 1e-7


def _softmax_of_nonzero(op: OpContext, scores: Tensor) -> Tensor:
    """Return the softmax in which scores of 0 stay 0, and 0.5 for each if all are."""
    greatest = op.reduced(ops.ReduceMax, scores, (1,))
    powers = op.unary(ops.Exp(), op.subtract(scores, greatest))
    # exp(-max) times the score: onnxruntime scales small scores by it instead of leaving them out.
    small = op.multiply(scores, op.unary(ops.Exp(), op.unary(ops.Neg(), greatest)))
    nonzero = op.relation(ops.Greater(), op.unary(ops.Abs(), scores), _NONZERO)
    parts = op.select(nonzero, powers, small)
    total = op.reduced(ops.Sum, parts, (1,))
    nothing = op.relation(ops.Equal(), total, 0.0)
    # A total of 0 means that every score was 0: each gets one half.
    return op.select(nothing, 0.5, op.divide(parts, op.select(nothing, 1.0, total)))


def greatest_class(op: OpContext, scores: Tensor) -> Tensor:
    """Return the position of the first greatest score of each row, int64.

    ``scores`` are [rows, classes], and the result is [rows]. Of equal scores, the first one counts.
    """
    return op.emit(ops.ArgMax(1), [scores], scores.shape[:1], DType.INT64)


def labelled(op: OpContext, positions: Tensor, labels: Sequence[int] | Sequence[str]) -> Value:
    """Return the label at each of the ``positions``, int32 or int64; a text is represented by its position, as int64.

    Labels 0, 1, 2 and so on need no table, and integer labels are looked up. The value has the texts as its ``labels``,
    which the generated header lists.
    """
    wide = op.cast(positions, DType.INT64)
    texts = tuple(label for label in labels if isinstance(label, str))
    if texts:
        # A text has no tensor type: its position is returned, and the header lists the texts.
        return Value(wide, as_onnx(len(wide.shape)), labels=texts)
    values = np.array(labels, np.int64)
    # Labels 0, 1 and so on are the positions themselves.
    if np.array_equal(values, np.arange(len(values))):
        return op.made(wide)
    table = op.weights("labels", values)
    return op.made(op.emit(ops.Gather(0), [table, positions], positions.shape))


def both_classes(op: OpContext, score: Tensor, *, complement: bool) -> Tensor:
    """Return [rows, 2] for the score [rows, 1] of the second class.

    The score of the first one is -score or, if ``complement``, 1 - score.
    """
    signs = op.weights("signs", np.array([[-1, 1]], np.float32))
    both = op.binary(ops.Mul(), score, signs)
    return op.add(both, op.weights("offsets", np.array([[1, 0]], np.float32))) if complement else both


def matches(op: OpContext, source: Tensor, keys: Array) -> Tensor:
    """Return whether each element equals each of ``keys``, along a new last dimension.

    The result is bool [..., keys]. Raises ``UnsupportedModelError`` if the type of the elements cannot represent a key.
    """
    # Integer keys are compared in int64, which holds every integer type of a feature.
    source = source if source.dtype is DType.FLOAT32 else op.cast(source, DType.INT64)
    typed = keys.astype(source.dtype.numpy)
    if not np.array_equal(typed, keys):
        raise op.unsupported(f"keys that {source.dtype.value} cannot represent are not supported")
    column = op.builder.reshaped(source, (*source.shape, 1))
    return op.relation(ops.Equal(), column, op.weights("keys", typed))


def weighted_sums(op: OpContext, source: Tensor, weights: Array, bias: Array) -> Tensor:
    """Return the rows of ``source`` times ``weights`` [outputs, inputs] plus ``bias``, which may be empty.

    ``source`` is float32 [rows, inputs]; the result is float32 [rows, outputs]. Raises ``GraphError`` if the sizes do
    not fit.
    """
    if weights.ndim != 2 or weights.shape[1] != source.shape[1] or bias.size not in {0, weights.shape[0]}:
        raise GraphError(op.node.place, f"{list(weights.shape)} weights and {bias.size} offsets do not fit {source}")
    return fully_connected(op, source, weights, bias if bias.any() else None)
