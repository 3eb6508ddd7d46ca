"""DEPTHWISE_CONV_2D."""

from __future__ import annotations

from functools import partial

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import DepthwiseConv2D
from mlfbuild.native.lowering.call import Candidate, KernelCall
from mlfbuild.native.lowering.common.candidates import Specialised, choose
from mlfbuild.native.lowering.common.convolution import has_offset, lower_convolution, lower_depthwise_conv2d_offset
from mlfbuild.native.lowering.convolution.conv2d_float_mve import lower_depthwise_conv2d_float_mve
from mlfbuild.native.lowering.convolution.depthwise_conv2d_dsp import lower_depthwise_conv2d_dsp
from mlfbuild.native.lowering.convolution.depthwise_conv2d_int16 import (
    lower_depthwise_conv2d_int16_dsp,
    lower_depthwise_conv2d_int16_mve,
)
from mlfbuild.native.lowering.convolution.depthwise_conv2d_mve import lower_depthwise_conv2d_mve
from mlfbuild.native.lowering.convolution.depthwise_conv2d_thumb import lower_depthwise_conv2d_thumb
from mlfbuild.native.settings import CodegenSettings

_SPECIALISED = Specialised[DepthwiseConv2D](
    "depthwise_conv2d",
    lower_depthwise_conv2d_float_mve,
    (("", lower_depthwise_conv2d_mve),),
    lower_depthwise_conv2d_dsp,
    lower_depthwise_conv2d_int16_mve,
    lower_depthwise_conv2d_int16_dsp,
    lower_depthwise_conv2d_thumb,
)


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the fastest kernel that the CPU and the node permit."""
    operator = node.operator
    assert isinstance(operator, DepthwiseConv2D)
    weights = graph.inputs_of(node)[1]
    overwrites = _overwrites(operator) if weights.constant else ()
    if has_offset(graph, node):
        return lower_depthwise_conv2d_offset(graph, node, operator, overwrites)
    portable = partial(lower_convolution, graph, node, operator, "depthwise_conv2d", overwrites)
    specialised = _SPECIALISED.candidates(graph, node, operator, settings)
    return choose((*specialised, Candidate("depthwise_conv2d", portable)))


def _overwrites(operator: DepthwiseConv2D) -> tuple[int, ...]:
    """Return the positions of inputs that the output may overwrite.

    Without padding, a pixel is written to the start of its window, which no later window reads. Each channel is written
    after it was read and depends on no other, so this requires one output channel for each input channel.
    """
    alone = operator.depth_multiplier == 1 and operator.padding == ((0, 0), (0, 0))
    return (0,) if alone else ()
