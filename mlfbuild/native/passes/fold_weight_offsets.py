"""Remove the zero points of weights that fit into int8 without them, so that the kernels for int8 compute the layer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlfbuild.native.graph import DType, Graph, Node, Quantization, Tensor
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected, TransposeConv
from mlfbuild.native.passes.rewrite import rebuild


def fold_weight_offsets(graph: Graph) -> Graph:
    """Subtract the zero point from the weights of each layer where all differences are int8."""
    extra: list[Tensor] = []
    return rebuild(graph, [_folded(graph, node, extra) for node in graph.nodes], extra)


def _folded(graph: Graph, node: Node, extra: list[Tensor]) -> Node:
    if not isinstance(node.operator, Conv2D | DepthwiseConv2D | FullyConnected | TransposeConv):
        return node
    weights = graph.inputs_of(node)[1]
    quantization = weights.quantization
    if weights.dtype is not DType.INT8 or weights.data is None or quantization is None or quantization.per_channel:
        return node
    differences = weights.data.astype(np.int16) - quantization.zero_point
    if quantization.zero_point == 0 or differences.min() < -128 or differences.max() > 127:
        return node
    centred = Quantization(quantization.scales, (0,), quantization.axis)
    name = f"{weights.name}/centred"
    extra.append(replace(weights, name=name, data=differences.astype(np.int8), quantization=centred))
    return replace(node, inputs=(node.inputs[0], name, *node.inputs[2:]))
