"""CONV_2D."""

from __future__ import annotations

from mlfbuild.compilers.native.ops.call import Call
from mlfbuild.compilers.native.ops.convolution import lower_convolution
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import Graph, Node
from mlfbuild.graph.ops import Conv2D


def lower(graph: Graph, node: Node, _settings: Settings) -> Call:
    """Return the call of ``mlf_conv2d_int8`` or ``mlf_conv2d_float``."""
    assert isinstance(node.operator, Conv2D)
    return lower_convolution(graph, node, node.operator, "conv2d")
