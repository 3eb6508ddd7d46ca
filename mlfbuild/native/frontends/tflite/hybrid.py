"""Layers of int8 weights over float32 (TensorFlow's dynamic range quantisation), with the numbers of LiteRT.

Such a layer becomes two nodes: one quantises the input in each run, the other one adds products of integers. LiteRT
quantises with a zero point in CONV_2D with a scale for each channel, in DEPTHWISE_CONV_2D, and in FULLY_CONNECTED with
the option ``asymmetric_quantize_inputs``.

``dense_product`` is for int16 by int8 weights with several scales, which also become a FULLY_CONNECTED.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from tflite.BuiltinOperator import BuiltinOperator
from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite.operators import TfliteSite
from mlfbuild.native.frontends.tflite.reader import RawOperator, RawTensor, WeightBlocks
from mlfbuild.native.frontends.tflite.tensors import Tensors
from mlfbuild.native.graph import Activation, Array, DType, Node, Operator, Quantization, Tensor, ops

_LAYERS: dict[type[Operator], Callable[..., ops.Hybrid]] = {
    ops.Conv2D: ops.HybridConv2D,
    ops.DepthwiseConv2D: ops.HybridDepthwiseConv2D,
    ops.FullyConnected: ops.HybridFullyConnected,
}
_CODES = frozenset(
    getattr(BuiltinOperator, name) for name in ("BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
)
_INT4_CODES = frozenset({BuiltinOperator.CONV_2D, BuiltinOperator.FULLY_CONNECTED})
_LEAST_OUTPUTS, _LEAST_INPUTS = 4, 32
"""The smallest layer for which LiteRT reads scales of blocks."""
_WHOLE = "give the converter a representative data set, so that it also quantises the activations"


class HybridLayers:
    """Makes the nodes of hybrid layers; layers that read one tensor in the same way share its integers."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._known: dict[tuple[str, int, bool], tuple[str, ...]] = {}

    def check(self, site: TfliteSite, operator: RawOperator, weights: RawTensor) -> None:
        """Refuse hybrid layers that are not compiled."""
        reason = ""
        if operator.code not in _CODES:
            reason = "only BATCH_MATMUL, convolutions and FULLY_CONNECTED are compiled with such weights"
        elif site.input(1).dtype is not DType.INT8:
            reason = "LiteRT computes such layers only with int8 weights"
        elif weights.type == TensorType.INT4 and operator.code not in _INT4_CODES:
            reason = "with int4 weights, only CONV_2D and FULLY_CONNECTED are compiled"
        if reason:
            raise site.unsupported(
                f"a hybrid layer ({site.input(1)} over float32, from TensorFlow's dynamic range quantisation) is not "
                f"supported: {reason}",
                _WHOLE,
                code="quantization-unsupported",
            )

    def nodes(self, node: Node, site: TfliteSite, blocks: WeightBlocks | None = None) -> list[Node]:
        """Return the nodes of a layer whose attributes are those of the float32 layer ``node``."""
        # Before a BATCH_MATMUL becomes a dense layer, as its options are of another table.
        asymmetric = self._is_asymmetric(node.operator, site)
        if isinstance(node.operator, ops.BatchMatmul):
            node, site = self._as_dense(node, node.operator, site)
        source, weights, output = site.input(0), site.input(1), site.output()
        layer, nodes = _LAYERS[type(node.operator)](node.operator), []
        dense, scales_of_blocks = isinstance(node.operator, ops.FullyConnected), None
        if blocks is not None and isinstance(node.operator, ops.FullyConnected):
            scales_of_blocks = self._scales_of_blocks(site, node.operator.activation, blocks)
        if not source.shape or not weights.shape or (dense and source.elements % weights.shape[-1]):
            raise site.wrong(f"{source} does not fit the weights {weights}")
        depth = weights.shape[-1]
        rows = source.elements // depth if dense else source.shape[0]
        by_channel = weights.quantization is not None and layer.channel_first(weights)
        # LiteRT quantises with a zero point in these layers, without looking at the option.
        offset = asymmetric or by_channel or blocks is not None
        # Layers that quantise one tensor in the same way share its integers.
        key = (source.name, rows, offset)
        if key not in self._known:
            nodes.append(self._quantized(source, rows, asymmetric=key[2]))
            self._known[key] = nodes[0].outputs
        values, scales, *zero_points = self._known[key]
        bias = node.inputs[2] if len(node.inputs) > 2 else None
        inputs = (values, scales, zero_points[0] if zero_points else None, node.inputs[1], bias)
        if scales_of_blocks is not None:
            blockwise = ops.BlockwiseFullyConnected()
            return [*nodes, Node(output.name, blockwise, (*inputs, scales_of_blocks.name), (output.name,))]
        return [*nodes, Node(output.name, layer, inputs, (output.name,))]

    def _scales_of_blocks(self, site: TfliteSite, activation: Activation, blocks: WeightBlocks) -> Tensor:
        """Return the scales as a float32 constant [outputs, blocks]; refuse layers that LiteRT does not compute."""
        weights, reason = site.input(1), ""
        if activation is not Activation.NONE:
            reason = "with a fused activation, which LiteRT ignores"
        elif blocks.zero_points > 0:
            reason = "with zero points, which LiteRT ignores"
        elif len(weights.shape) != 2 or weights.shape[0] < _LEAST_OUTPUTS or weights.shape[1] < _LEAST_INPUTS:
            reason = (
                f"with fewer than {_LEAST_OUTPUTS} outputs or {_LEAST_INPUTS} inputs, which LiteRT does not compute"
            )
        if reason:
            raise site.unsupported(
                f"a scale for each block of {weights} is not supported {reason}",
                "quantise the weights per channel",
                code="quantization-unsupported",
            )
        scales = self._tensors.half(site.place, blocks.scales)
        outputs, inputs = weights.shape
        # A size of 0 in a damaged file would divide by 0.
        count = inputs // blocks.size if blocks.size > 0 else 0
        if scales is None or count * blocks.size != inputs or scales.shape != (outputs, count):
            raise site.wrong(f"the scales of {weights} should be float16, one for each block of {blocks.size} weights")
        like = Tensor(f"{weights.name}_scales", scales.shape, DType.FLOAT32)
        return self._tensors.add(like.name, like, scales)

    def _as_dense(self, node: Node, operator: ops.BatchMatmul, site: TfliteSite) -> tuple[Node, TfliteSite]:
        """Return a BATCH_MATMUL by one constant matrix as FULLY_CONNECTED, which LiteRT computes in the same way."""
        source, matrix = site.input(0), site.input(1)
        # Several matrices would be several layers.
        constant = matrix.data is not None and len(matrix.shape) > 1 and set(matrix.shape[:-2]) <= {1}
        if operator.adj_x or matrix.data is None or not constant or len(source.shape) < 2:
            raise site.unsupported(
                f"a hybrid BATCH_MATMUL of {source} by {matrix} is not supported, only by one constant matrix and "
                "without adj_x",
                _WHOLE,
                code="quantization-unsupported",
            )
        data = _rows(matrix, matrix.data, operator)
        if source.shape[-1] != data.shape[1]:
            raise site.wrong(f"{source} does not fit {matrix}")
        affine = matrix.quantization
        if affine is not None and affine.per_channel:
            # The columns of the matrix are the outputs of the layer.
            if affine.axis != len(matrix.shape) - (2 if operator.adj_y else 1):
                raise site.wrong(f"{matrix} has its scales along dimension {affine.axis}, not that of the columns")
            affine = replace(affine, axis=0)
        like = Tensor(f"{matrix.name}_dense", data.shape, DType.INT8, affine)
        weights = self._tensors.add(like.name, like, data)
        dense = replace(node, operator=ops.FullyConnected(), inputs=(node.inputs[0], weights.name))
        return dense, replace(site, inputs=(source, weights))

    def _is_asymmetric(self, operator: Operator, site: TfliteSite) -> bool:
        if isinstance(operator, ops.FullyConnected | ops.BatchMatmul):
            dense = isinstance(operator, ops.FullyConnected)
            table = "FullyConnectedOptions" if dense else "BatchMatMulOptions"
            return any(site.fields(table, "AsymmetricQuantizeInputs"))
        return isinstance(operator, ops.DepthwiseConv2D)

    def _quantized(self, source: Tensor, rows: int, *, asymmetric: bool) -> Node:
        """Return the node that quantises each of ``rows`` rows of ``source``."""
        likes = [
            ("quantized", Tensor(source.name, source.shape, DType.INT8)),
            ("scales", Tensor(source.name, (rows,), DType.FLOAT32)),
            *([("zero_points", Tensor(source.name, (rows,), DType.INT32))] if asymmetric else []),
        ]
        outputs = [self._tensors.add(f"{source.name}_{word}", like).name for word, like in likes]
        return Node(outputs[0], ops.QuantizeRows(asymmetric), (source.name,), tuple(outputs))


def dense_product(tensors: Tensors, site: TfliteSite, operator: ops.BatchMatmul, affine: Quantization) -> Node:
    """Return the FULLY_CONNECTED that computes ``operator``, a product of int16 by one int8 matrix.

    ``affine`` are the scales of the matrix. The weights are the rows of the transposed matrix, which ``tensors`` get.

    The columns of the matrix are the channels of the layer; ``affine`` has its scales along them.
    """
    first, second = site.input(0), site.input(1)
    data, rank = second.data, len(second.shape)
    if data is None or operator.adj_x or second.elements != math.prod(second.shape[-2:]) or rank > len(first.shape):
        raise site.unsupported(
            f"{second} has several scales, which only one constant matrix may have",
            "quantise the product with one scale",
            "quantization-unsupported",
        )
    if rank < 2 or affine.axis != rank - (2 if operator.adj_y else 1):
        raise site.wrong(f"{second} must have its scales along the columns of the result, not dimension {affine.axis}")
    rows = _rows(second, data, operator)
    like = Tensor(second.name, rows.shape, second.dtype, replace(affine, axis=0))
    weights = tensors.add(f"{second.name}_rows", like, rows)
    output = site.output().name
    return Node(output, ops.FullyConnected(keep_num_dims=True), (first.name, weights.name), (output,))


def _rows(matrix: Tensor, data: Array, operator: ops.BatchMatmul) -> Array:
    """Return the second factor of ``operator`` as weights [outputs, inputs]."""
    given = data.reshape(matrix.shape[-2:])
    return np.ascontiguousarray(given if operator.adj_y else given.T)
