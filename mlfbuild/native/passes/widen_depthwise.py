"""Replace depthwise convolutions of one channel by convolutions, whose kernels compute several outputs at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlfbuild.native.graph import Graph, Node, Tensor
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D
from mlfbuild.native.passes.rewrite import rebuild


def widen_depthwise(graph: Graph) -> Graph:
    """Replace each DEPTHWISE_CONV_2D of one input channel and several output channels by a CONV_2D.

    The image must have one channel, which every filter reads, and the weights must be constant. Integer results stay
    the same bit for bit; float32 sums may be added in another order.
    """
    extra: list[Tensor] = []
    return rebuild(graph, [_widen(graph, node, extra) for node in graph.nodes], extra)


def _widen(graph: Graph, node: Node, extra: list[Tensor]) -> Node:
    """Return ``node``, or the convolution that replaces it, and add its weights to ``extra``."""
    operator = node.operator
    if not isinstance(operator, DepthwiseConv2D):
        return node
    source, weights = graph.inputs_of(node)[:2]
    # With one output channel, both operators are the same.
    # Weights that are computed at run time would need a TRANSPOSE there, which costs more than it saves.
    if source.shape[3] != 1 or operator.depth_multiplier == 1 or weights.data is None:
        return node
    filters = _filters(weights, f"{weights.name}/filters")
    extra.append(filters)
    # The bias, one number for each output channel, is the same for both operators.
    shared = operator.stride, operator.dilation, operator.padding, operator.activation
    convolution = Conv2D(*shared, rounded_product=operator.rounded_product)
    return replace(node, operator=convolution, inputs=(node.inputs[0], filters.name, *node.inputs[2:]))


def _filters(weights: Tensor, name: str) -> Tensor:
    """Return ``weights`` [1, H, W, C] as [C, H, W, 1].

    Per-channel scales move to dimension 0, the output channels of CONV_2D.
    """
    data = np.ascontiguousarray(weights.known.transpose(3, 1, 2, 0))
    quantization = weights.quantization
    if quantization is not None and quantization.per_channel:
        # The channels move from the last dimension to the first.
        quantization = replace(quantization, axis=0)
    return replace(weights, name=name, shape=data.shape, data=data, quantization=quantization)
