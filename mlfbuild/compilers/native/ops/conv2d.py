"""CONV_2D."""

from __future__ import annotations

from mlfbuild.compilers.native.ops.call import Call
from mlfbuild.compilers.native.ops.conv2d_dsp import lower_conv2d_dsp
from mlfbuild.compilers.native.ops.conv2d_mve import lower_conv2d_mve
from mlfbuild.compilers.native.ops.convolution import lower_convolution
from mlfbuild.compilers.native.ops.float_mve import lower_conv2d_float_mve
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node
from mlfbuild.graph.ops import Conv2D


def lower(graph: Graph, node: Node, settings: Settings) -> Call:
    """Return the call of the first kernel that the processor has and that takes the node."""
    assert isinstance(node.operator, Conv2D)
    dtype = graph.outputs_of(node)[0].dtype
    quantized = dtype is DType.INT8
    call = None
    if dtype is DType.FLOAT32 and settings.has("mve") and settings.has("fpu"):
        call = lower_conv2d_float_mve(graph, node, node.operator)
    if quantized and settings.has("mve"):
        call = lower_conv2d_mve(graph, node, node.operator)
    if call is None and quantized and settings.has("dsp"):
        call = lower_conv2d_dsp(graph, node, node.operator)
    return call or lower_convolution(graph, node, node.operator, "conv2d")
