"""DEPTHWISE_CONV_2D."""

from __future__ import annotations

from mlfbuild.compilers.native.ops.call import Call
from mlfbuild.compilers.native.ops.convolution import lower_convolution
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import Graph, Node
from mlfbuild.graph.ops import DepthwiseConv2D


def lower(graph: Graph, node: Node, _settings: Settings) -> Call:
    """Return the call of ``mlf_depthwise_conv2d_int8`` or ``mlf_depthwise_conv2d_float``."""
    assert isinstance(node.operator, DepthwiseConv2D)
    return lower_convolution(graph, node, node.operator, "depthwise_conv2d", _overwrites(node.operator))


def _overwrites(operator: DepthwiseConv2D) -> tuple[int, ...]:
    """Without padding a pixel is written where its own window starts, which no later window reads.

    A channel is written after it was read, and reads no other; so this needs one output channel for each input channel.
    """
    alone = operator.depth_multiplier == 1 and operator.padding == ((0, 0), (0, 0))
    return (0,) if alone else ()
