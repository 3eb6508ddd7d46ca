"""DEPTHWISE_CONV_2D."""

from __future__ import annotations

from mlfbuild.compilers.native.lowering.call import KernelCall
from mlfbuild.compilers.native.lowering.common.convolution import lower_convolution
from mlfbuild.compilers.native.lowering.common.specialised import Specialised
from mlfbuild.compilers.native.lowering.conv2d_float_mve import lower_depthwise_conv2d_float_mve
from mlfbuild.compilers.native.lowering.depthwise_conv2d_dsp import lower_depthwise_conv2d_dsp
from mlfbuild.compilers.native.lowering.depthwise_conv2d_int16 import (
    lower_depthwise_conv2d_int16_dsp,
    lower_depthwise_conv2d_int16_mve,
)
from mlfbuild.compilers.native.lowering.depthwise_conv2d_mve import lower_depthwise_conv2d_mve
from mlfbuild.compilers.native.settings import CodegenSettings
from mlfbuild.graph import Graph, Node
from mlfbuild.graph.ops import DepthwiseConv2D

_SPECIALISED = Specialised[DepthwiseConv2D](
    lower_depthwise_conv2d_float_mve,
    lower_depthwise_conv2d_mve,
    lower_depthwise_conv2d_dsp,
    lower_depthwise_conv2d_int16_mve,
    lower_depthwise_conv2d_int16_dsp,
)


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the first kernel that the processor has and that takes the node."""
    operator = node.operator
    assert isinstance(operator, DepthwiseConv2D)
    special = _SPECIALISED.lower(graph, node, operator, settings)
    return special or lower_convolution(graph, node, operator, "depthwise_conv2d", _overwrites(operator))


def _overwrites(operator: DepthwiseConv2D) -> tuple[int, ...]:
    """Without padding a pixel is written where its own window starts, which no later window reads.

    A channel is written after it was read, and reads no other; so this needs one output channel for each input channel.
    """
    alone = operator.depth_multiplier == 1 and operator.padding == ((0, 0), (0, 0))
    return (0,) if alone else ()
