"""Remove the zero points of weights that fit into int8 without them, so that the kernels for int8 compute the layer.

A layer computes ``sum of (x - zero point of x) * (w - zero point of w)``. The zero point of x becomes a part of the
bias, because it multiplies constants. That of w multiplies inputs, which are known only at run time: kernels would have
to sum all inputs of each window as well. The fast kernels for int8 do not. Networks of uint8, which the frontend turns
into int8, have such weights, with one scale for the layer.

If all differences ``w - zero point`` are int8, they become the weights, with the zero point 0. The sums have the same
integers, so no output changes. That often holds: training centres weights, and a layer rarely uses both ends of uint8.

For example, with the zero point -3, the weights [-100, -3, 20, 124] become [-97, 0, 23, 127]. With 125 instead of 124
the last difference would be 128: the layer stays as it is, and ``lowering/common/convolution`` or ``conv2d_offset_dsp``
compute it with the sums of inputs. With the inputs [1, 2, 3, 4] and their zero point 0::

    as stored    -100*1 - 3*2 + 20*3 + 124*4 = 450, minus -3 * (1 + 2 + 3 + 4) = -30     480
    folded       -97*1 + 0*2 + 23*3 + 127*4                                              480

The rules:

1. Only layers with constant int8 weights: CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED and TRANSPOSE_CONV.
2. All differences of the layer are int8, or nothing changes: one zero point is for all of its channels. Clamping the
   few that are not would change results.
3. Weights with one scale for each channel have no zero points. The layer's other constants stay: the scale is the
   same, and the bias counts in units of it.
4. The weights get a new name, because other nodes may read the old ones.

It is after ``fold_constants``, because weights may be results. The zero point of the inputs is not folded here: only
some kernels multiply stored inputs (``folded_bias`` in ``lowering/call``).
"""

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
