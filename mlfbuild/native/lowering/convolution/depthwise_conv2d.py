"""DEPTHWISE_CONV_2D."""

from __future__ import annotations

from functools import partial

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import DepthwiseConv2D
from mlfbuild.native.lowering.call import Candidate, KernelCall
from mlfbuild.native.lowering.common.candidates import Specialised, choose
from mlfbuild.native.lowering.common.convolution import lower_convolution, lower_depthwise_conv2d_offset
from mlfbuild.native.lowering.common.layer import Weighted
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
    lower_depthwise_conv2d_float_mve, (("", lower_depthwise_conv2d_mve),), lower_depthwise_conv2d_dsp,
    lower_depthwise_conv2d_int16_mve, lower_depthwise_conv2d_int16_dsp, lower_depthwise_conv2d_thumb,
)  # fmt: skip


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the fastest kernel that the CPU and the node permit."""
    assert isinstance(node.operator, DepthwiseConv2D)
    layer = Weighted(graph, node, node.operator, settings.replaceable)
    overwrites = _overwrites(layer) if layer.weights.constant else ()
    if layer.has_offset:
        return lower_depthwise_conv2d_offset(layer, overwrites)
    portable = Candidate("depthwise_conv2d", partial(lower_convolution, layer, overwrites))
    return choose((*_SPECIALISED.candidates(layer, settings), portable))


def _overwrites(layer: Weighted[DepthwiseConv2D]) -> tuple[int, ...]:
    """Return the positions of inputs that the output may overwrite.

    Without padding, a pixel is written to the start of its window, which no later window reads. Each channel is written
    after it was read and depends on no other, so this requires one output channel for each input channel.
    """
    return (0,) if layer.operator.depth_multiplier == 1 and not layer.is_padded else ()
