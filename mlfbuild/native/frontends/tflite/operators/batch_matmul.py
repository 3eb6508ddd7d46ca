"""BATCH_MATMUL."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Node, Operator, Quantization, Tensor, ops

if TYPE_CHECKING:
    from mlfbuild.native.frontends.tflite.tensors import Tensors


def _batch_matmul(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("BatchMatMulOptions")
        return ops.BatchMatmul(bool(options.AdjX()), bool(options.AdjY()))


def dense(tensors: Tensors, site: TfliteSite, operator: Operator) -> Node:
    """Return the FULLY_CONNECTED that computes ``operator``, a product of int16 by one int8 matrix with several scales.

    Its weights are the rows of the transposed matrix, which ``tensors`` get.
    """
    assert isinstance(operator, ops.BatchMatmul)
    first, second = site.input(0), site.input(1)
    affine, data, rank = second.quantization, second.data, len(second.shape)
    assert affine is not None
    if data is None or operator.adj_x or second.elements != math.prod(second.shape[-2:]) or rank > len(first.shape):
        raise site.unsupported(
            f"{second} has several scales, which only one constant matrix may have",
            "quantise the product with one scale",
            "quantization-unsupported",
        )
    if rank < 2 or affine.axis != rank - (2 if operator.adj_y else 1):
        raise site.wrong(f"{second} must have its scales along the columns of the result, not dimension {affine.axis}")
    matrix = data.reshape(second.shape[-2:])
    rows = np.ascontiguousarray(matrix if operator.adj_y else matrix.T)
    like = Tensor(second.name, rows.shape, second.dtype, Quantization(affine.scales, affine.zero_points, 0))
    weights = tensors.add(f"{second.name}_rows", like, rows)
    names = [tensor.name for tensor in (first, weights)]
    output = site.output().name
    return Node(output, ops.FullyConnected(keep_num_dims=True), (*names,), (output,))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.BATCH_MATMUL: OperatorKind(_batch_matmul, 2),
}
