"""Fuse a RELU into the operator before it, if that operator can clamp its output."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.native.graph import Activation, Graph, Node
from mlfbuild.native.graph.ops import (
    Add,
    AveragePool2D,
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    MaxPool2D,
    Mul,
    Relu,
    Sub,
)
from mlfbuild.native.passes.rewrite import rebuild

# Operators whose kernels clamp to a range anyway: with the bounds of a RELU, that clamp costs nothing more.
_CLAMPING = Add | AveragePool2D | Conv2D | DepthwiseConv2D | FullyConnected | MaxPool2D | Mul | Sub


def fuse_activation(graph: Graph) -> Graph:
    """Fuse each RELU that is the only reader of an operator's output and does not change the quantization.

    The operator must be one that clamps and have no activation yet. Its output takes the name, type and shape of the
    RELU's, so that the readers of the RELU do not change.
    """
    fused: dict[Node, Node] = {}
    gone: set[Node] = set()
    for node in graph.nodes:
        users = graph.readers(node.outputs[0])
        # Another reader, or the caller, needs the values before the clamp.
        if len(users) == 1 and node.outputs[0] not in graph.results:
            clamped = _fuse(graph, node, users[0])
            if clamped is not None:
                fused[node] = clamped
                gone.add(users[0])
    return rebuild(graph, [fused.get(node, node) for node in graph.nodes if node not in gone])


def _fuse(graph: Graph, node: Node, relu: Node) -> Node | None:
    """Return ``node`` with the activation and output of ``relu``, or ``None`` if they cannot be fused."""
    operator = node.operator
    if not isinstance(relu.operator, Relu) or not isinstance(operator, _CLAMPING):
        return None
    # With another scale, RELU is a rescaling with a rounding of its own.
    same = graph.outputs_of(node)[0].quantization == graph.outputs_of(relu)[0].quantization
    if not same or operator.activation is not Activation.NONE:
        return None
    return replace(node, operator=replace(operator, activation=relu.operator.activation), outputs=relu.outputs)
