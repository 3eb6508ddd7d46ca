"""Split layers whose weights are larger than the memory that they are streamed through into layers of some channels.

An output channel of CONV_2D and FULLY_CONNECTED needs only its own row of the weights. So a layer is computed by
several layers, each with some of the rows, and their outputs are concatenated. If the output is a vector, that costs
nothing, because the pieces are consecutive in memory; other layers stay as they are. Every sum is the same, and so is
every result, bit for bit.

A piece has a multiple of 16 channels, so that kernels compute several at once, and pieces begin at aligned addresses.
It takes half of the memory, if 16 channels fit, so that the weights of the next piece are copied while one is computed.
For example, a FULLY_CONNECTED of 640 inputs and 128 outputs with 24 KiB to stream through::

    w[128,640]    ->    8 layers with w[16,640] of 10,240 bytes    -> CONCATENATION
"""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.library.cgen import aligned
from mlfbuild.native.graph import Graph, Node, Tensor
from mlfbuild.native.graph.bases import convolution_tensors
from mlfbuild.native.graph.ops import Concatenation, Conv2D, FullyConnected
from mlfbuild.native.passes.rewrite import picked, rebuild

_CHANNELS = 16
"""A multiple of the channels that kernels compute at once, and of the bytes to which tensors are aligned."""
_PER_CHANNEL = 16
"""Bytes that kernels keep beside the weights of a channel: its bias, multiplier and shift."""


def split_layers(graph: Graph, room: int) -> Graph:
    """Return ``graph`` with layers whose weights take more than ``room`` bytes split by output channels.

    This object is returned if there are none, or if ``room`` is 0.
    """
    nodes: list[Node] = []
    extra: list[Tensor] = []
    for node in graph.nodes:
        rows = _rows(graph, node, room)
        nodes += [node] if rows is None else _pieces(graph, node, rows, extra)
    return graph if len(nodes) == len(graph.nodes) else rebuild(graph, nodes, extra)


def _rows(graph: Graph, node: Node, room: int) -> int | None:
    """Return the output channels of a piece of ``node``; ``None`` if it stays as it is."""
    if not isinstance(node.operator, Conv2D | FullyConnected):
        return None
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    known = weights.constant and (bias is None or bias.constant) and not source.constant
    channels = weights.shape[0]
    if not known or not 0 < room < weights.size or output.elements != channels:
        return None
    row = aligned(weights.size // channels) + _PER_CHANNEL
    fitting = next((each for each in (room // 2 // row, room // row) if each >= _CHANNELS), 0) // _CHANNELS * _CHANNELS
    if not fitting:
        return None
    pieces = -(-channels // fitting)
    return aligned(-(-channels // pieces), _CHANNELS)


def _pieces(graph: Graph, node: Node, rows: int, extra: list[Tensor]) -> list[Node]:
    """Return the layers of ``rows`` output channels, and the operator that concatenates their outputs."""
    _, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    found = []
    for number, first in enumerate(range(0, weights.shape[0], rows)):
        part, stem = slice(first, first + rows), f"{output.name}/part{number}"
        data, scales = weights.known[part], picked(weights.quantization, part, 0)
        piece = replace(weights, name=f"{stem}/weights", shape=data.shape, data=data, quantization=scales)
        result = replace(output, name=stem, shape=(*output.shape[:-1], piece.shape[0]))
        tensors = [piece, result]
        if bias is not None:
            values = bias.known.reshape(-1)[part]
            tensors.append(Tensor(f"{stem}/bias", values.shape, bias.dtype, data=values))
        extra += tensors
        inputs = (node.inputs[0], *(each.name for each in (piece, *tensors[2:])))
        found.append(Node(f"{node.name}/part{number}", node.operator, inputs, (stem,)))
    joined = Concatenation(axis=len(output.shape) - 1)
    return [*found, Node(node.name, joined, tuple(each.outputs[0] for each in found), (output.name,))]
