"""Calls of CMSIS-NN v7.0.0 in place of our own kernels (the option ``kernels: cmsis-nn``), node by node.

A node is handed to the library where a function of it computes the same bits, by conditions that hold for the processor
that the model is compiled for and for plain C, as the code of an archive builds on any machine. What the library does
not have, or does otherwise, stays with our own kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from mlfbuild.compilers.native.cmsis_nn import convolution, elementwise, fully_connected, pool, softmax
from mlfbuild.compilers.native.ops.call import Call
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import Graph, Node, Operator, ops as graph_ops

_LOWERING: MappingProxyType[type[Operator], Callable[[Graph, Node, Settings], Call | None]] = MappingProxyType(
    {
        graph_ops.Add: elementwise.lower,
        graph_ops.AveragePool2D: pool.lower,
        graph_ops.Conv2D: convolution.lower,
        graph_ops.DepthwiseConv2D: convolution.lower,
        graph_ops.FullyConnected: fully_connected.lower,
        graph_ops.MaxPool2D: pool.lower,
        graph_ops.Mul: elementwise.lower,
        graph_ops.Softmax: softmax.lower,
    }
)


def lower_cmsis_nn(graph: Graph, node: Node, settings: Settings) -> Call | None:
    """Return the call of the library that computes ``node``; ``None`` where our own kernel has to."""
    lowering = _LOWERING.get(type(node.operator))
    return None if lowering is None else lowering(graph, node, settings)
