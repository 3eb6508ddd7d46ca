"""Gemm and MatMul with constant weights."""

from __future__ import annotations

import numpy as np

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import Array, GraphError, Tensor, ops


def _gemm(site: Site) -> tuple[Value, ...]:
    source, weights = site.tensor(0), site.constant(1, "matrix B")
    if len(source.shape) != 2 or weights.ndim != 2:
        raise GraphError(site.node.place, f"takes matrices, has {source} and one of {weights.ndim} dimensions")
    if site.integer("transA", 0):
        source = site.builder.stored(Value(source, (1, 0)), (0, 1))
    matrix = weights if site.integer("transB", 0) else weights.T
    if source.shape[1] != matrix.shape[1]:
        raise GraphError(site.node.place, f"{source} does not fit {matrix.shape[1]} columns")
    matrix = (np.float32(site.number("alpha", 1.0)) * matrix).astype(weights.dtype)
    shape = (source.shape[0], matrix.shape[0])
    offsets = _offsets(site, shape)
    if offsets is None or (offsets == offsets[0]).all():
        return (site.made(_fully_connected(site, source, matrix, None if offsets is None else offsets[0])),)
    product = _fully_connected(site, source, matrix, None)
    return (site.made(site.emit(ops.Add(), [product, site.weights("C", offsets)], shape)),)


def _offsets(site: Site, shape: tuple[int, int]) -> Array | None:
    """Return beta * C, one number an element of the result."""
    if not site.has(2):
        return None
    offsets = np.float32(site.number("beta", 1.0)) * site.constant(2, "matrix C")
    try:
        return np.broadcast_to(offsets, shape).astype(np.float32)
    except ValueError:
        raise GraphError(site.node.place, f"C {list(offsets.shape)} does not fit a result {list(shape)}") from None


def _matmul(site: Site) -> tuple[Value, ...]:
    source, weights = site.tensor(0), site.constant(1, "matrix B")
    if weights.ndim == 1:
        raise site.unsupported("a vector as matrix B")
    if weights.ndim > 2 and weights.size != weights.shape[-1] * weights.shape[-2]:
        raise site.unsupported(f"a stack of matrices {list(weights.shape)} as matrix B; supported is one")
    matrix = weights.reshape(weights.shape[-2:]).T
    if source.shape[-1:] != (matrix.shape[1],):
        raise GraphError(site.node.place, f"{source} does not fit a matrix of {matrix.shape[1]} rows")
    made = _fully_connected(site, source, matrix, None)
    leading = (1,) * max(0, weights.ndim - len(source.shape))
    return (site.made(site.builder.reshaped(made, (*leading, *made.shape))),)


def _fully_connected(site: Site, source: Tensor, matrix: Array, bias: Array | None) -> Tensor:
    """Multiply the rows of ``source`` with ``matrix`` [outputs, inputs]."""
    weights = site.weights("weights", matrix)
    offsets = None if bias is None else site.weights("bias", bias)
    operator = ops.FullyConnected(keep_num_dims=True)
    return site.emit(operator, [source, weights, offsets], (*source.shape[:-1], matrix.shape[0]))


OPERATORS = {"Gemm": _gemm, "MatMul": _matmul}
