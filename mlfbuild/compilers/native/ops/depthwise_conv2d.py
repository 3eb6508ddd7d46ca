"""DEPTHWISE_CONV_2D."""

from __future__ import annotations

from mlfbuild.compilers.native.ops.call import Call
from mlfbuild.compilers.native.ops.convolution import lower_convolution
from mlfbuild.compilers.native.ops.depthwise_conv2d_dsp import lower_depthwise_conv2d_dsp
from mlfbuild.compilers.native.ops.depthwise_conv2d_mve import lower_depthwise_conv2d_mve
from mlfbuild.compilers.native.ops.float_mve import lower_depthwise_conv2d_float_mve
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node
from mlfbuild.graph.ops import DepthwiseConv2D


def lower(graph: Graph, node: Node, settings: Settings) -> Call:
    """Return the call of the first kernel that the processor has and that takes the node."""
    operator = node.operator
    assert isinstance(operator, DepthwiseConv2D)
    dtype = graph.outputs_of(node)[0].dtype
    quantized = dtype is DType.INT8
    call = None
    if dtype is DType.FLOAT32 and settings.has("mve") and settings.has("fpu"):
        call = lower_depthwise_conv2d_float_mve(graph, node, operator)
    if quantized and settings.has("mve"):
        call = lower_depthwise_conv2d_mve(graph, node, operator)
    if call is None and quantized and settings.has("dsp"):
        call = lower_depthwise_conv2d_dsp(graph, node, operator)
    return call or lower_convolution(graph, node, operator, "depthwise_conv2d", _overwrites(operator))


def _overwrites(operator: DepthwiseConv2D) -> tuple[int, ...]:
    """Without padding a pixel is written where its own window starts, which no later window reads.

    A channel is written after it was read, and reads no other; so this needs one output channel for each input channel.
    """
    alone = operator.depth_multiplier == 1 and operator.padding == ((0, 0), (0, 0))
    return (0,) if alone else ()
