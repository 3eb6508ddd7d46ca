"""Einsum of one or two tensors: diagonals and sums first, then a batched matrix product."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, reduced
from mlfbuild.native.frontends.onnx.operators.gather_elements import all_places, picked
from mlfbuild.native.frontends.onnx.site import OnnxSite
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


def _einsum(site: OnnxSite) -> tuple[Value, ...]:
    equation = "".join(site.text("equation", "").split())
    left, arrow, right = equation.partition("->")
    names = left.split(",")
    if len(names) != len(site.node.inputs):
        raise GraphError(site.node.place, f"the equation {equation!r} has {len(names)} terms")
    if len(names) > 2:
        raise site.unsupported(f"an equation of {len(names)} terms is not supported", "use one or two terms")
    labelled = [_term(site, index, labels) for index, labels in enumerate(names)]
    result = _labels(site, right, _dots(labelled)) if arrow else _implied(labelled)
    terms = [_diagonal(site, term) for term in labelled]
    known = {label for term in terms for label in term.labels}
    if len(set(result)) != len(result) or not set(result) <= known:
        raise GraphError(site.node.place, f"the equation {equation!r} makes labels of nothing, or one twice")
    wanted = [_summed(site, term, result + "".join(t.labels for t in terms if t is not term)) for term in terms]
    made = wanted[0] if len(wanted) == 1 else _product(site, wanted[0], wanted[1], result)
    return (site.made(_ordered(site, made, result)),)


def _term(site: OnnxSite, index: int, labels: str) -> _Term:
    """Return input ``index`` with a label for every dimension."""
    value = site.value(index)
    if value.dtype is not DType.FLOAT32:
        raise site.type_unsupported(value.tensor, "float32")
    tensor = site.tensor(index)
    rank = len(tensor.shape)
    labels = _labels(site, labels, rank - len(labels.replace("...", "")))
    if len(labels) != rank:
        raise GraphError(site.node.place, f"{len(labels)} labels do not fit {tensor}")
    return _Term(tensor, labels)


def _labels(site: OnnxSite, labels: str, dots: int) -> str:
    """Return ``labels`` with ``dots`` digits in place of the ellipsis."""
    found = labels.replace("...", _DOTS[: max(dots, 0)][::-1], 1)
    if not found.isalnum() and found:
        raise GraphError(site.node.place, f"has the labels {labels!r}")
    return found


def _dots(terms: Sequence[_Term]) -> int:
    return max(sum(label in _DOTS for label in term.labels) for term in terms)


def _implied(terms: Sequence[_Term]) -> str:
    """Return the default labels of the result: those of an ellipsis, then those that occur once, sorted."""
    every = "".join(term.labels for term in terms)
    dots = sorted({label for label in every if label in _DOTS}, reverse=True)
    return "".join(dots) + "".join(sorted(x for x in set(every) if every.count(x) == 1 and x not in _DOTS))


def _diagonal(site: OnnxSite, term: _Term) -> _Term:
    """Return ``term`` with all dimensions of the same label replaced by their diagonal."""
    labels = "".join(dict.fromkeys(term.labels))
    if labels == term.labels:
        return term
    places = all_places(site, term.tensor.shape)
    numbers = {label: number for number, label in enumerate(labels)}
    try:
        kept = np.einsum(places, [numbers[x] for x in term.labels], [numbers[x] for x in labels])
    except ValueError:
        raise GraphError(site.node.place, f"a diagonal of {term.tensor}, which is not square") from None
    return _Term(picked(site, site.made(term.tensor), kept).tensor, labels)


def _summed(site: OnnxSite, term: _Term, kept: str) -> _Term:
    """Return ``term`` summed along all labels that are not in ``kept``."""
    axes = [axis for axis, label in enumerate(term.labels) if label not in kept]
    if not axes:
        return term
    made = reduced(site, ops.Sum, term.tensor, axes)
    left = [axis for axis in range(len(term.labels)) if axis not in axes]
    shape = [term.tensor.shape[axis] for axis in left]
    return _Term(site.builder.reshaped(made, shape), "".join(term.labels[axis] for axis in left))


def _ordered(site: OnnxSite, term: _Term, labels: str) -> Tensor:
    """Return the tensor of ``term`` with its dimensions in the order of ``labels``."""
    value = Value(term.tensor, tuple(labels.index(label) for label in term.labels))
    return site.builder.stored(value, tuple(range(len(labels))))


def _product(site: OnnxSite, first: _Term, second: _Term, result: str) -> _Term:
    """Multiply as batches of matrices; the labels that both terms and the result have are the batch."""
    sizes = _common_sizes(site, first, second)
    stacks = "".join(label for label in first.labels if label in second.labels and label in result)
    inner = "".join(label for label in first.labels if label in second.labels and label not in result)
    rows = "".join(label for label in first.labels if label not in second.labels)
    columns = "".join(label for label in second.labels if label not in first.labels)
    leading = tuple(sizes[label] for label in stacks)
    height, depth, width = (math.prod(sizes[label] for label in part) for part in (rows, inner, columns))
    left = _matrices(site, first, stacks + rows + inner, sizes, (*leading, height, depth))
    if second.tensor.data is not None and not stacks:
        weights = _matrices(site, second, columns + inner, sizes, (width, depth))
        made = site.emit(ops.FullyConnected(keep_num_dims=True), [left, weights, None], (height, width))
    else:
        right = _matrices(site, second, stacks + inner + columns, sizes, (*leading, depth, width))
        made = site.emit(ops.BatchMatmul(), [left, right], (*leading, height, width))
    labels = stacks + rows + columns
    return _Term(site.builder.reshaped(made, [sizes[label] for label in labels]), labels)


def _common_sizes(site: OnnxSite, first: _Term, second: _Term) -> dict[str, int]:
    sizes = {**second.sizes(), **first.sizes()}
    for label, size in second.sizes().items():
        if 1 not in {size, sizes[label]} and size != sizes[label]:
            raise GraphError(site.node.place, f"{first.tensor} and {second.tensor} differ in the label {label!r}")
        sizes[label] = max(size, sizes[label])
    return sizes


def _matrices(site: OnnxSite, term: _Term, labels: str, sizes: dict[str, int], shape: tuple[int, ...]) -> Tensor:
    tensor = _ordered(site, term, labels)
    full = tuple(sizes[label] for label in labels)
    if tensor.shape != full:
        tensor = site.emit(ops.BroadcastTo(), [tensor], full)
    return site.builder.reshaped(tensor, shape)


OPERATORS: Mapping[str, Converter] = {
    "Einsum": _einsum,
}
