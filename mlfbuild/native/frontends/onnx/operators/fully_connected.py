"""Gemm and MatMul, with constant weights or two computed matrices, and Einsum.

Einsum has one or two tensors: diagonals and sums first, then a batched matrix product.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.parameters import (
    LayerParameters,
    batch_product,
    integer_parameters,
    integer_rows,
    weighted_rows,
)
from mlfbuild.native.frontends.onnx.conversion.selection import all_places, picked
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Quantization, Tensor, ops

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
    made = wanted[0] if len(wanted) == 1 else _product_of_terms(op, wanted[0], wanted[1], result)
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
    made = op.reduced(ops.Sum, term.tensor, axes)
    left = [axis for axis in range(len(term.labels)) if axis not in axes]
    shape = [term.tensor.shape[axis] for axis in left]
    return _Term(op.builder.reshaped(made, shape), "".join(term.labels[axis] for axis in left))


def _ordered(op: OpContext, term: _Term, labels: str) -> Tensor:
    """Return the tensor of ``term`` with its dimensions in the order of ``labels``."""
    value = Value(term.tensor, tuple(labels.index(label) for label in term.labels))
    return op.builder.stored(value, tuple(range(len(labels))))


def _product_of_terms(op: OpContext, first: _Term, second: _Term, result: str) -> _Term:
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


def _gemm(op: OpContext) -> tuple[Value, ...]:
    if not op.is_constant(1):
        return (_gemm_of_computed(op),)
    made = _integer_gemm(op)
    if made is not None:
        return (op.real(made),)
    source, weights = _rows(op, op.value(0)), op.constant(1, "matrix B")
    matrix = weights if op.integer("transB", 0) else weights.T
    if len(source.shape) != 2 or weights.ndim != 2 or source.shape[1] != matrix.shape[1]:
        raise GraphError(op.node.place, f"{source} does not fit a matrix {list(weights.shape)}")
    matrix = (np.float32(op.real_attribute("alpha", 1.0)) * matrix).astype(weights.dtype)
    shape = (source.shape[0], matrix.shape[0])
    if op.has(2) and not op.is_constant(2):
        return (_plus(op, weighted_rows(op, source, LayerParameters(matrix, None)), op.value(2)),)
    offsets = _offsets(op, shape)
    # A C that is the same in all rows is a bias. Any other one takes an addition.
    if offsets is None or (offsets == offsets[0]).all():
        bias = None if offsets is None else offsets[0]
        return (op.made(weighted_rows(op, source, LayerParameters(matrix, bias))),)
    product = weighted_rows(op, source, LayerParameters(matrix, None))
    return (op.made(op.emit(ops.Add(), [product, op.weights("C", offsets)], shape)),)


def _rows(op: OpContext, value: Value) -> Tensor:
    """Return input 0, transposed if ``transA`` is set."""
    transposed = op.integer("transA", 0) and value.rank == 2
    return op.builder.stored(value, (1, 0) if transposed else tuple(range(value.rank)))


def _integer_gemm(op: OpContext) -> Tensor | None:
    """Return the product in integers; ``None`` if it is not quantised or the scales do not allow it."""
    held, target = op.held(0), op.held_target
    simple = op.real_attribute("alpha", 1.0) == 1.0 and op.real_attribute("beta", 1.0) == 1.0
    if held.quantization is None or target is None or not simple:
        return None
    transposed = op.integer("transB", 0)
    parameters = integer_parameters(op, axis=0 if transposed else 1)
    source = _rows(op, held)
    if parameters is None or parameters.weights.ndim != 2 or len(source.shape) != 2:
        return None
    matrix = parameters.weights if transposed else parameters.weights.T
    # A bias of integers has one number for each channel, not for each row.
    if source.shape[1] != matrix.shape[1] or (parameters.bias is not None and op.constant(2, "C").ndim > 1):
        return None
    if parameters.bias is not None and parameters.bias.size not in {1, matrix.shape[0]}:
        return None
    bias = None if parameters.bias is None else np.broadcast_to(parameters.bias, matrix.shape[:1])
    return integer_rows(op, source, LayerParameters(matrix, bias, parameters.scales), target)


def _offsets(op: OpContext, shape: tuple[int, int]) -> Array | None:
    """Return beta * C broadcast to ``shape``, that of the result; ``None`` if there is no C."""
    if not op.has(2):
        return None
    offsets = np.float32(op.real_attribute("beta", 1.0)) * op.constant(2, "matrix C")
    op.check_room(shape, DType.FLOAT32.size)
    try:
        return np.broadcast_to(offsets, shape).astype(np.float32)
    except ValueError:
        raise GraphError(op.node.place, f"C {list(offsets.shape)} does not fit a result {list(shape)}") from None


def _gemm_of_computed(op: OpContext) -> Value:
    """Return alpha * A * B + beta * C for a computed B."""
    source, matrix = _rows(op, op.value(0)), op.tensor(1)
    if len(source.shape) != 2 or len(matrix.shape) != 2:
        raise GraphError(op.node.place, f"takes matrices, has {source} and {matrix}")
    operator = ops.BatchMatmul(adj_y=bool(op.integer("transB", 0)))
    product = op.emit(operator, [source, matrix], (source.shape[0], operator.sizes(source, matrix)[1][1]))
    product = _times(op, product, op.real_attribute("alpha", 1.0))
    return _plus(op, product, op.value(2)) if op.has(2) else op.made(product)


def _plus(op: OpContext, product: Tensor, offsets: Value) -> Value:
    """Return ``product`` + beta * C."""
    tensor = _times(op, op.builder.stored(offsets, tuple(range(offsets.rank))), op.real_attribute("beta", 1.0))
    return op.made(op.emit(ops.Add(), [product, tensor], product.shape))


def _times(op: OpContext, tensor: Tensor, factor: float) -> Tensor:
    return tensor if factor == 1.0 else op.emit(ops.Mul(), [tensor, op.number("factor", factor)], tensor.shape)


def _matmul(op: OpContext) -> tuple[Value, ...]:
    shape = op.constant_shape(1)
    if shape is not None and len(shape) >= 2 and math.prod(shape) == shape[-1] * shape[-2] and op.held(0).rank > 0:
        return (_times_matrix(op, len(shape) - 1),)
    return (_product(op),)


def _times_matrix(op: OpContext, axis: int) -> Value:
    """Multiply all rows of input 0 with one constant matrix; the scales of its columns are along ``axis``."""
    held, target = op.held_in_order(0), op.held_target
    made = None
    if held.quantization is not None and target is not None:
        parameters = integer_parameters(op, axis)
        if parameters is not None:
            made = _one_matrix(op, held.tensor, parameters, target)
    if made is None:
        made = _one_matrix(op, op.tensor(0), LayerParameters(op.constant(1, "matrix B"), None), None)
    return op.real(op.required(made))


def _one_matrix(
    op: OpContext, source: Tensor, parameters: LayerParameters, target: Quantization | None
) -> Tensor | None:
    weights = parameters.weights
    rows, columns = weights.shape[-2:]
    matrix = weights.reshape(rows, columns).T
    if source.shape[-1:] != (matrix.shape[1],):
        raise GraphError(op.node.place, f"{source} does not fit a matrix of {matrix.shape[1]} rows")
    own = LayerParameters(matrix, None, parameters.scales)
    made = weighted_rows(op, source, own) if target is None else integer_rows(op, source, own, target)
    leading = (1,) * max(0, weights.ndim - max(2, len(source.shape)))
    return None if made is None else op.builder.reshaped(made, (*leading, *made.shape))


def _product(op: OpContext) -> Value:
    """Multiply two batches of matrices, in integers if possible."""
    values, target = [op.held_in_order(0), op.held_in_order(1)], op.held_target
    if target is not None and all(value.quantization is not None for value in values):
        made = batch_product(op, values, target)
        if made is not None:
            return op.real(made)
    return op.made(op.required(batch_product(op, [op.builder.plain(value) for value in values], None)))


def _affine_grid(op: OpContext) -> tuple[Value, ...]:
    """Multiply the matrices [x, 2, 3] or [x, 3, 4] with the coordinates, -1 to 1, of all elements of an image."""
    matrices, sizes = op.tensor(0), op.integers("size", 1) or ()
    axes = len(sizes) - 2
    if axes not in (2, 3) or min(sizes) < 1 or matrices.shape != (sizes[0], axes, axes + 1):
        raise GraphError(op.node.place, f"{matrices} does not fit an image of {list(sizes)}")
    op.check_room((*sizes[2:], axes + 1), np.dtype(np.float64).itemsize)
    lines = []
    for size in sizes[2:]:
        place = np.arange(size, dtype=np.float64)
        aligned = op.integer("align_corners", 0)
        lines.append(place * 2 / (size - 1) - 1 if aligned and size > 1 else (2 * place + 1) / size - 1)
    grid = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(sizes[2:])], axis=-1).astype(np.float32)
    rows = op.weights("coordinates", grid.reshape(1, -1, axes + 1))
    made = op.emit(ops.BatchMatmul(adj_y=True), [rows, matrices], (sizes[0], rows.shape[1], axes))
    return (op.made(op.builder.reshaped(made, (sizes[0], *sizes[2:], axes))),)


OPERATORS: Mapping[str, Converter] = {
    "AffineGrid": _affine_grid,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "MatMul": _matmul,
}
