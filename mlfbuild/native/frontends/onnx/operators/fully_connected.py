"""Gemm and MatMul, with constant weights or two computed matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.parameters import LayerParameters, integer_parameters
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, DType, GraphError, Quantization, Tensor, ops


def _gemm(site: OnnxSite) -> tuple[Value, ...]:
    if not site.is_constant(1):
        return (_gemm_of_computed(site),)
    made = _integer_gemm(site)
    if made is not None:
        return (site.real(made),)
    source, weights = _rows(site, site.value(0)), site.constant(1, "matrix B")
    matrix = weights if site.integer("transB", 0) else weights.T
    if len(source.shape) != 2 or weights.ndim != 2 or source.shape[1] != matrix.shape[1]:
        raise GraphError(site.node.place, f"{source} does not fit a matrix {list(weights.shape)}")
    matrix = (np.float32(site.real_attribute("alpha", 1.0)) * matrix).astype(weights.dtype)
    shape = (source.shape[0], matrix.shape[0])
    if site.has(2) and not site.is_constant(2):
        return (_plus(site, _fully_connected(site, source, LayerParameters(matrix, None)), site.value(2)),)
    offsets = _offsets(site, shape)
    if offsets is None or (offsets == offsets[0]).all():
        bias = None if offsets is None else offsets[0]
        return (site.made(_fully_connected(site, source, LayerParameters(matrix, bias))),)
    product = _fully_connected(site, source, LayerParameters(matrix, None))
    return (site.made(site.emit(ops.Add(), [product, site.weights("C", offsets)], shape)),)


def _rows(site: OnnxSite, value: Value) -> Tensor:
    """Return input 0, transposed if ``transA`` is set."""
    transposed = site.integer("transA", 0) and value.rank == 2
    return site.builder.stored(value, (1, 0) if transposed else tuple(range(value.rank)))


def _integer_gemm(site: OnnxSite) -> Tensor | None:
    """Return the product in integers; ``None`` if it is not quantised or the scales do not allow it."""
    held, target = site.held(0), site.held_target
    simple = site.real_attribute("alpha", 1.0) == 1.0 and site.real_attribute("beta", 1.0) == 1.0
    if held.quantization is None or target is None or not simple:
        return None
    transposed = site.integer("transB", 0)
    parameters = integer_parameters(site, axis=0 if transposed else 1)
    source = _rows(site, held)
    if parameters is None or parameters.weights.ndim != 2 or len(source.shape) != 2:
        return None
    matrix = parameters.weights if transposed else parameters.weights.T
    if source.shape[1] != matrix.shape[1] or (parameters.bias is not None and site.constant(2, "C").ndim > 1):
        return None
    if parameters.bias is not None and parameters.bias.size not in {1, matrix.shape[0]}:
        return None
    bias = None if parameters.bias is None else np.broadcast_to(parameters.bias, matrix.shape[:1])
    return _integer_rows(site, source, LayerParameters(matrix, bias, parameters.scales), target)


def _offsets(site: OnnxSite, shape: tuple[int, int]) -> Array | None:
    """Return beta * C broadcast to ``shape``, that of the result; ``None`` if there is no C."""
    if not site.has(2):
        return None
    offsets = np.float32(site.real_attribute("beta", 1.0)) * site.constant(2, "matrix C")
    site.check_room(shape, DType.FLOAT32.size)
    try:
        return np.broadcast_to(offsets, shape).astype(np.float32)
    except ValueError:
        raise GraphError(site.node.place, f"C {list(offsets.shape)} does not fit a result {list(shape)}") from None


def _gemm_of_computed(site: OnnxSite) -> Value:
    """Return alpha * A * B + beta * C for a computed B."""
    source, matrix = _rows(site, site.value(0)), site.tensor(1)
    if len(source.shape) != 2 or len(matrix.shape) != 2:
        raise GraphError(site.node.place, f"takes matrices, has {source} and {matrix}")
    operator = ops.BatchMatmul(adj_y=bool(site.integer("transB", 0)))
    product = site.emit(operator, [source, matrix], (source.shape[0], operator.sizes(source, matrix)[1][1]))
    product = _times(site, product, site.real_attribute("alpha", 1.0))
    return _plus(site, product, site.value(2)) if site.has(2) else site.made(product)


def _plus(site: OnnxSite, product: Tensor, offsets: Value) -> Value:
    """Return ``product`` + beta * C."""
    tensor = _times(site, site.builder.stored(offsets, tuple(range(offsets.rank))), site.real_attribute("beta", 1.0))
    return site.made(site.emit(ops.Add(), [product, tensor], product.shape))


def _times(site: OnnxSite, tensor: Tensor, factor: float) -> Tensor:
    return tensor if factor == 1.0 else site.emit(ops.Mul(), [tensor, site.number("factor", factor)], tensor.shape)


def _matmul(site: OnnxSite) -> tuple[Value, ...]:
    shape = site.constant_shape(1)
    if shape is not None and len(shape) >= 2 and math.prod(shape) == shape[-1] * shape[-2] and site.held(0).rank > 0:
        return (_times_matrix(site, len(shape) - 1),)
    return (_product(site),)


def _times_matrix(site: OnnxSite, axis: int) -> Value:
    """Multiply all rows of input 0 with one constant matrix; the scales of its columns are along ``axis``."""
    held, target = site.held_in_order(0), site.held_target
    made = None
    if held.quantization is not None and target is not None:
        parameters = integer_parameters(site, axis)
        if parameters is not None:
            made = _one_matrix(site, held.tensor, parameters, target)
    if made is None:
        made = _one_matrix(site, site.tensor(0), LayerParameters(site.constant(1, "matrix B"), None), None)
    assert made is not None
    return site.real(made)


def _one_matrix(
    site: OnnxSite, source: Tensor, parameters: LayerParameters, target: Quantization | None
) -> Tensor | None:
    weights = parameters.weights
    matrix = weights.reshape(weights.shape[-2:]).T
    if source.shape[-1:] != (matrix.shape[1],):
        raise GraphError(site.node.place, f"{source} does not fit a matrix of {matrix.shape[1]} rows")
    own = LayerParameters(matrix, None, parameters.scales)
    made = _fully_connected(site, source, own) if target is None else _integer_rows(site, source, own, target)
    leading = (1,) * max(0, weights.ndim - max(2, len(source.shape)))
    return None if made is None else site.builder.reshaped(made, (*leading, *made.shape))


def _product(site: OnnxSite) -> Value:
    """Multiply two batches of matrices, in integers if possible."""
    values, target = [site.held_in_order(0), site.held_in_order(1)], site.held_target
    if target is not None and all(value.quantization is not None for value in values):
        made = batch_product(site, values, target)
        if made is not None:
            return site.real(made)
    made = batch_product(site, [site.builder.plain(value) for value in values], None)
    assert made is not None
    return site.made(made)


def batch_product(site: OnnxSite, values: list[Value], target: Quantization | None) -> Tensor | None:
    """Return the product like numpy's ``matmul``: a vector is a row on the left side and a column on the right."""
    first, second = (value.tensor for value in values)
    row, column = len(first.shape) == 1, len(second.shape) == 1
    if not first.shape or not second.shape:
        raise GraphError(site.node.place, "multiplies a number without dimensions")
    first = site.builder.reshaped(first, (1, *first.shape)) if row else first
    second = site.builder.reshaped(second, (*second.shape, 1)) if column else second
    try:
        batches = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    except ValueError:
        raise GraphError(site.node.place, f"{first} and {second} do not broadcast") from None
    shape = (*batches, first.shape[-2], second.shape[-1])
    if target is None:
        made: Tensor | None = site.emit(ops.BatchMatmul(), [first, second], shape)
    else:
        made = site.attempt(ops.BatchMatmul(), [first, second], shape, target)
    if made is None:
        return None
    kept = [*batches, *([] if row else shape[-2:-1]), *([] if column else shape[-1:])]
    return site.builder.reshaped(made, kept)


def fully_connected(site: OnnxSite, source: Tensor, weights: Array, bias: Array | None) -> Tensor:
    """Multiply the rows of ``source`` by float32 ``weights`` [outputs, inputs], and add ``bias``."""
    return _fully_connected(site, source, LayerParameters(weights, bias))


def _fully_connected(site: OnnxSite, source: Tensor, parameters: LayerParameters) -> Tensor:
    """Multiply the rows of ``source`` by weights [outputs, inputs]."""
    inputs = parameters.inputs(site, source, parameters.weights)
    return site.emit(_ROWS, inputs, (*source.shape[:-1], parameters.weights.shape[0]))


def _integer_rows(site: OnnxSite, source: Tensor, parameters: LayerParameters, target: Quantization) -> Tensor | None:
    """Multiply in integers; ``None`` if the scales do not allow it."""
    inputs = parameters.inputs(site, source, parameters.weights)
    return site.attempt(_ROWS, inputs, (*source.shape[:-1], parameters.weights.shape[0]), target)


_ROWS = ops.FullyConnected(keep_num_dims=True)


def _affine_grid(site: OnnxSite) -> tuple[Value, ...]:
    """Multiply the matrices [x, 2, 3] or [x, 3, 4] with the coordinates, -1 to 1, of all elements of an image."""
    matrices, sizes = site.tensor(0), site.integers("size", 1) or ()
    axes = len(sizes) - 2
    if axes not in (2, 3) or min(sizes) < 1 or matrices.shape != (sizes[0], axes, axes + 1):
        raise GraphError(site.node.place, f"{matrices} does not fit an image of {list(sizes)}")
    site.check_room((*sizes[2:], axes + 1), np.dtype(np.float64).itemsize)
    lines = []
    for size in sizes[2:]:
        place = np.arange(size, dtype=np.float64)
        aligned = site.integer("align_corners", 0)
        lines.append(place * 2 / (size - 1) - 1 if aligned and size > 1 else (2 * place + 1) / size - 1)
    grid = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(sizes[2:])], axis=-1).astype(np.float32)
    rows = site.weights("coordinates", grid.reshape(1, -1, axes + 1))
    made = site.emit(ops.BatchMatmul(adj_y=True), [rows, matrices], (sizes[0], rows.shape[1], axes))
    return (site.made(site.builder.reshaped(made, (sizes[0], *sizes[2:], axes))),)


OPERATORS: Mapping[str, Converter] = {
    "AffineGrid": _affine_grid,
    "Gemm": _gemm,
    "MatMul": _matmul,
}
