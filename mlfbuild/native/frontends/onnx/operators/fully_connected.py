"""Gemm and MatMul, with constant weights or two computed matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter
from mlfbuild.native.frontends.onnx.conversion.parameters import LayerParameters, integer_parameters
from mlfbuild.native.frontends.onnx.conversion.products import batch_product, integer_rows, weighted_rows
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Quantization, Tensor, ops


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
    "Gemm": _gemm,
    "MatMul": _matmul,
}
