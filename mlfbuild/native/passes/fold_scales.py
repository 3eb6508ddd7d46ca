"""Fold a MUL or ADD of one constant per channel after a float32 convolution into its weights and bias.

Batch normalisation, for example, is such a factor followed by an offset.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Activation, Array, DType, Graph, Node, Tensor
from mlfbuild.native.graph.bases import convolution_tensors
from mlfbuild.native.graph.ops import Add, Conv2D, DepthwiseConv2D, FullyConnected, Mul
from mlfbuild.native.passes.rewrite import rebuild

_Weighted = Conv2D | DepthwiseConv2D | FullyConnected


def fold_scales(graph: Graph) -> Graph:
    """Fold factors and offsets until none is left that can be folded.

    Returns the same graph if nothing fits. Both operators must be float32, the constant must have one number or one for
    each channel, and no other node may read the tensor between them. The activation of the removed operator moves
    along.
    """
    # One at a time, because each fold changes the node that the next factor, or offset, is folded into.
    while (folded := _fold_one(graph)) is not None:
        graph = folded
    return graph


def _fold_one(graph: Graph) -> Graph | None:
    for node in graph.nodes:
        operator, output = node.operator, node.outputs[0]
        # A fused activation lies between the sum and the factor, and a clamp does not commute with either of them.
        # An output of the network must keep the values before the factor.
        if not isinstance(operator, _Weighted) or operator.activation is not Activation.NONE or output in graph.results:
            continue
        if not convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))[1].constant:
            continue
        users = graph.readers(output)
        # Other readers need the tensor without the factor.
        if len(users) == 1 and isinstance(users[0].operator, Add | Mul):
            numbers = _channel_numbers(graph, users[0], output)
            if numbers is not None:
                return _folded(graph, node, users[0], numbers)
    return None


def _channel_numbers(graph: Graph, user: Node, output: str) -> npt.NDArray[np.float64] | None:
    """Return the constant of ``user`` with one number per channel, or ``None`` if it has no such constant."""
    tensor = graph.tensor(output)
    # x * x reads the tensor twice and has no other operand; the tensor itself is not constant.
    (other,) = [name for name in user.inputs if name != output] or [output]
    constant = graph.tensor(str(other)).data
    if tensor.dtype is not DType.FLOAT32 or constant is None or graph.tensor(user.outputs[0]).shape != tensor.shape:
        return None
    channels = tensor.shape[-1]
    # One number for each channel is along the last dimension; [channels, 1] would be one for each column.
    if constant.size not in {1, channels} or constant.size != (constant.shape or (1,))[-1]:
        return None
    return np.broadcast_to(constant.reshape(-1), (channels,)).astype(np.float64)


def _folded(graph: Graph, node: Node, user: Node, numbers: npt.NDArray[np.float64]) -> Graph:
    """Return ``graph`` without ``user``, whose constant ``numbers`` are folded into ``node``."""
    weights, bias = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))[1:3]
    assert isinstance(node.operator, _Weighted)
    assert isinstance(user.operator, Add | Mul)
    # In double: a product or sum is rounded to float32 once.
    offset = np.zeros(numbers.shape) if bias is None or bias.data is None else bias.data.reshape(-1).astype(np.float64)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        scaled: Array = weights.known.astype(np.float64)
    if isinstance(user.operator, Add):
        with np.errstate(invalid="ignore"):
            offset = offset + numbers
    else:
        # FULLY_CONNECTED has weights [outputs, inputs], so that its output channels are the first dimension.
        axis = 0 if isinstance(node.operator, FullyConnected) else node.operator.channel_axis
        with np.errstate(invalid="ignore"):  # NaN stays NaN
            scaled = np.moveaxis(np.moveaxis(scaled, axis, -1) * numbers, -1, axis)
            offset = offset * numbers
    # The name of the user's output is unique, and its tensor stays, so that these names are free.
    new = [_constant(f"{user.outputs[0]}/{word}", data) for word, data in (("weights", scaled), ("bias", offset))]
    folded = replace(
        node,
        operator=replace(node.operator, activation=user.operator.activation),
        # The node takes over the activation and the output of the user, which disappears.
        inputs=(node.inputs[0], new[0].name, new[1].name),
        outputs=user.outputs,
    )
    return rebuild(graph, [folded if other is node else other for other in graph.nodes if other is not user], new)


def _constant(name: str, data: Array) -> Tensor:
    with np.errstate(over="ignore"):  # overflows to infinity, as on the device
        return Tensor(name, data.shape, DType.FLOAT32, data=data.astype(np.float32))
