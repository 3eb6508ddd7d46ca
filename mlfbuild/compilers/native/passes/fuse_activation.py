"""A RELU behind an operator that can clamp its own output becomes that operator's activation."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.compilers.native.passes.rewrite import readers, rebuild
from mlfbuild.graph import Activation, Graph, Node
from mlfbuild.graph.ops import Add, AveragePool2D, Conv2D, DepthwiseConv2D, FullyConnected, MaxPool2D, Mul, Relu, Sub

_CLAMPING = Add | AveragePool2D | Conv2D | DepthwiseConv2D | FullyConnected | MaxPool2D | Mul | Sub


def fuse_activation(graph: Graph) -> Graph:
    """Let operators clamp, of which a RELU alone reads the output, where that has the scale of the RELU's own."""
    fused: dict[Node, Node] = {}
    gone: set[Node] = set()
    for node in graph.nodes:
        users = readers(graph, node.outputs[0])
        if len(users) == 1 and node.outputs[0] not in graph.results:
            clamped = _fuse(graph, node, users[0])
            if clamped is not None:
                fused[node] = clamped
                gone.add(users[0])
    return rebuild(graph, [fused.get(node, node) for node in graph.nodes if node not in gone])


def _fuse(graph: Graph, node: Node, relu: Node) -> Node | None:
    """Return ``node`` writing what ``relu`` does, or ``None`` if that would not be the same."""
    operator = node.operator
    if not isinstance(relu.operator, Relu) or not isinstance(operator, _CLAMPING):
        return None
    same = graph.outputs_of(node)[0].quantization == graph.outputs_of(relu)[0].quantization
    if not same or operator.activation is not Activation.NONE:
        return None
    return replace(node, operator=replace(operator, activation=relu.operator.activation), outputs=relu.outputs)
