"""Products of matrices: with constant weights, and of two batches that are computed."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.parameters import LayerParameters
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, GraphError, Quantization, Tensor, ops


def batch_product(op: OpContext, values: list[Value], target: Quantization | None) -> Tensor | None:
    """Return the product like numpy's ``matmul``: a vector is a row on the left side and a column on the right.

    The result has the broadcast batch dimensions. Raises ``GraphError`` if they do not broadcast.
    """
    first, second = (value.tensor for value in values)
    row, column = len(first.shape) == 1, len(second.shape) == 1
    if not first.shape or not second.shape:
        raise GraphError(op.node.place, "multiplies a number without dimensions")
    first = op.builder.reshaped(first, (1, *first.shape)) if row else first
    second = op.builder.reshaped(second, (*second.shape, 1)) if column else second
    try:
        batches = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    except ValueError:
        raise GraphError(op.node.place, f"{first} and {second} do not broadcast") from None
    shape = (*batches, first.shape[-2], second.shape[-1])
    if target is None:
        made: Tensor | None = op.emit(ops.BatchMatmul(), [first, second], shape)
    else:
        made = op.attempt(ops.BatchMatmul(), [first, second], shape, target)
    if made is None:
        return None
    # A vector on either side loses the dimension of 1 that was added for the product.
    kept = [*batches, *([] if row else shape[-2:-1]), *([] if column else shape[-1:])]
    return op.builder.reshaped(made, kept)


def fully_connected(op: OpContext, source: Tensor, weights: Array, bias: Array | None) -> Tensor:
    """Multiply the rows of ``source`` by float32 ``weights`` [outputs, inputs], and add ``bias``."""
    return weighted_rows(op, source, LayerParameters(weights, bias))


def weighted_rows(op: OpContext, source: Tensor, parameters: LayerParameters) -> Tensor:
    """Multiply the rows of ``source`` by weights [outputs, inputs]."""
    inputs = parameters.inputs(op, source, parameters.weights)
    return op.emit(_ROWS, inputs, (*source.shape[:-1], parameters.weights.shape[0]))


def integer_rows(op: OpContext, source: Tensor, parameters: LayerParameters, target: Quantization) -> Tensor | None:
    """Multiply in integers; ``None`` if the scales do not allow it."""
    inputs = parameters.inputs(op, source, parameters.weights)
    return op.attempt(_ROWS, inputs, (*source.shape[:-1], parameters.weights.shape[0]), target)


_ROWS = ops.FullyConnected(keep_num_dims=True)
