"""Einsum of one or two tensors: diagonals and sums first, then a batched matrix product."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter, reduced
from mlfbuild.native.frontends.onnx.conversion.selection import all_places, picked
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, GraphError, Tensor, ops

_DOTS = "0123456789"
"""Labels for the dimensions of an ellipsis, counted from the last."""


@dataclass(frozen=True, eq=False)
class _Term:
    """A tensor and a label for each of its dimensions."""

    tensor: Tensor
    labels: str

    def sizes(self) -> dict[str, int]:
        """Return the size of each label."""
        return dict(zip(self.labels, self.tensor.shape, strict=True))


def _einsum(op: OpContext) -> tuple[Value, ...]:
    equation = "".join(op.text("equation", "").split())
    left, arrow, right = equation.partition("->")
    names = left.split(",")
    if len(names) != len(op.node.inputs):
        raise GraphError(op.node.place, f"the equation {equation!r} has {len(names)} terms")
    if len(names) > 2:
        raise op.unsupported(f"an equation of {len(names)} terms is not supported", "use one or two terms")
    labelled = [_term(op, index, labels) for index, labels in enumerate(names)]
    result = _labels(op, right, _dots(labelled)) if arrow else _implied(labelled)
    terms = [_diagonal(op, term) for term in labelled]
    known = {label for term in terms for label in term.labels}
    if len(set(result)) != len(result) or not set(result) <= known:
        raise GraphError(op.node.place, f"the equation {equation!r} makes labels of nothing, or one twice")
    # Labels of one term only are summed before the product, which then is smaller.
    wanted = [_summed(op, term, result + "".join(t.labels for t in terms if t is not term)) for term in terms]
    made = wanted[0] if len(wanted) == 1 else _product(op, wanted[0], wanted[1], result)
    return (op.made(_ordered(op, made, result)),)


def _term(op: OpContext, index: int, labels: str) -> _Term:
    """Return input ``index`` with a label for every dimension."""
    value = op.value(index)
    if value.dtype is not DType.FLOAT32:
        raise op.type_unsupported(value.tensor, "float32")
    tensor = op.tensor(index)
    rank = len(tensor.shape)
    labels = _labels(op, labels, rank - len(labels.replace("...", "")))
    if len(labels) != rank:
        raise GraphError(op.node.place, f"{len(labels)} labels do not fit {tensor}")
    return _Term(tensor, labels)


def _labels(op: OpContext, labels: str, dots: int) -> str:
    """Return ``labels`` with ``dots`` digits in place of the ellipsis."""
    found = labels.replace("...", _DOTS[: max(dots, 0)][::-1], 1)
    if not found.isalnum() and found:
        raise GraphError(op.node.place, f"has the labels {labels!r}")
    return found


def _dots(terms: Sequence[_Term]) -> int:
    return max(sum(label in _DOTS for label in term.labels) for term in terms)


def _implied(terms: Sequence[_Term]) -> str:
    """Return the default labels of the result: those of an ellipsis, then those that occur once, sorted."""
    every = "".join(term.labels for term in terms)
    dots = sorted({label for label in every if label in _DOTS}, reverse=True)
    return "".join(dots) + "".join(sorted(x for x in set(every) if every.count(x) == 1 and x not in _DOTS))


def _diagonal(op: OpContext, term: _Term) -> _Term:
    """Return ``term`` with all dimensions of the same label replaced by their diagonal."""
    labels = "".join(dict.fromkeys(term.labels))
    if labels == term.labels:
        return term
    places = all_places(op, term.tensor.shape)
    numbers = {label: number for number, label in enumerate(labels)}
    try:
        kept = np.einsum(places, [numbers[x] for x in term.labels], [numbers[x] for x in labels])
    except ValueError:
        raise GraphError(op.node.place, f"a diagonal of {term.tensor}, which is not square") from None
    return _Term(picked(op, op.made(term.tensor), kept).tensor, labels)


def _summed(op: OpContext, term: _Term, kept: str) -> _Term:
    """Return ``term`` summed along all labels that are not in ``kept``."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in kept]
    if not axes:
        return term
    made = reduced(op, ops.Sum, term.tensor, axes)
    left = [axis for axis in range(len(term.labels)) if axis not in axes]
    shape = [term.tensor.shape[axis] for axis in left]
    return _Term(op.builder.reshaped(made, shape), "".join(term.labels[axis] for axis in left))


def _ordered(op: OpContext, term: _Term, labels: str) -> Tensor:
    """Return the tensor of ``term`` with its dimensions in the order of ``labels``."""
    value = Value(term.tensor, tuple(labels.index(label) for label in term.labels))
    return op.builder.stored(value, tuple(range(len(labels))))


def _product(op: OpContext, first: _Term, second: _Term, result: str) -> _Term:
    """Multiply as batches of matrices; the labels that both terms and the result have are the batch."""
    sizes = _common_sizes(op, first, second)
    stacks = "".join(label for label in first.labels if label in second.labels and label in result)
    inner = "".join(label for label in first.labels if label in second.labels and label not in result)
    rows = "".join(label for label in first.labels if label not in second.labels)
    columns = "".join(label for label in second.labels if label not in first.labels)
    leading = tuple(sizes[label] for label in stacks)
    height, depth, width = (math.prod(sizes[label] for label in part) for part in (rows, inner, columns))
    left = _matrices(op, first, stacks + rows + inner, sizes, (*leading, height, depth))
    # Constant weights have better kernels, which need them as [outputs, inputs].
    if second.tensor.data is not None and not stacks:
        weights = _matrices(op, second, columns + inner, sizes, (width, depth))
        made = op.emit(ops.FullyConnected(keep_num_dims=True), [left, weights, None], (height, width))
    else:
        right = _matrices(op, second, stacks + inner + columns, sizes, (*leading, depth, width))
        made = op.emit(ops.BatchMatmul(), [left, right], (*leading, height, width))
    labels = stacks + rows + columns
    return _Term(op.builder.reshaped(made, [sizes[label] for label in labels]), labels)


def _common_sizes(op: OpContext, first: _Term, second: _Term) -> dict[str, int]:
    sizes = {**second.sizes(), **first.sizes()}
    for label, size in second.sizes().items():
        # ONNX's Einsum broadcasts dimensions of 1, like numpy.
        if 1 not in {size, sizes[label]} and size != sizes[label]:
            raise GraphError(op.node.place, f"{first.tensor} and {second.tensor} differ in the label {label!r}")
        sizes[label] = max(size, sizes[label])
    return sizes


def _matrices(op: OpContext, term: _Term, labels: str, sizes: dict[str, int], shape: tuple[int, ...]) -> Tensor:
    tensor = _ordered(op, term, labels)
    full = tuple(sizes[label] for label in labels)
    if tensor.shape != full:
        tensor = op.emit(ops.BroadcastTo(), [tensor], full)
    return op.builder.reshaped(tensor, shape)


OPERATORS: Mapping[str, Converter] = {
    "Einsum": _einsum,
}
