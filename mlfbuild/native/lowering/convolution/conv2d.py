"""CONV_2D."""

from __future__ import annotations

from mlfbuild.native.graph import DType, Graph, Node
from mlfbuild.native.graph.ops import Conv2D
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.convolution import lower_convolution
from mlfbuild.native.lowering.common.offset import has_offset, lower_conv2d_offset
from mlfbuild.native.lowering.common.specialised import Specialised
from mlfbuild.native.lowering.convolution.conv2d_dsp import lower_conv2d_dsp
from mlfbuild.native.lowering.convolution.conv2d_float_mve import lower_conv2d_float_mve
from mlfbuild.native.lowering.convolution.conv2d_float_vfp import lower_conv2d_float_vfp
from mlfbuild.native.lowering.convolution.conv2d_int16_dsp import lower_conv2d_int16_dsp
from mlfbuild.native.lowering.convolution.conv2d_int16_mve import lower_conv2d_int16_mve
from mlfbuild.native.lowering.convolution.conv2d_long_dsp import lower_conv2d_long_dsp
from mlfbuild.native.lowering.convolution.conv2d_mve import lower_conv2d_mve
from mlfbuild.native.lowering.convolution.conv2d_offset_dsp import lower_conv2d_offset_dsp
from mlfbuild.native.lowering.convolution.conv2d_thumb import lower_conv2d_thumb
from mlfbuild.native.settings import CodegenSettings

_SPECIALISED = Specialised[Conv2D](
    lower_conv2d_float_mve,
    lower_conv2d_mve,
    lower_conv2d_dsp,
    lower_conv2d_int16_mve,
    lower_conv2d_int16_dsp,
    lower_conv2d_thumb,
    lower_conv2d_float_vfp,
)


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the fastest kernel that the CPU and the node permit."""
    operator = node.operator
    assert isinstance(operator, Conv2D)
    if has_offset(graph, node):
        dsp = lower_conv2d_offset_dsp(graph, node, operator) if settings.has("dsp") else None
        return dsp or lower_conv2d_offset(graph, node, operator)
    # For cores that issue one instruction at a time; with MVE, vectors are faster.
    long = settings.has("dsp") and not settings.has("mve") and not settings.is_dual_issue
    if long and graph.outputs_of(node)[0].dtype is DType.INT8:
        call = lower_conv2d_long_dsp(graph, node, operator)
        if call is not None:
            return call
    special = _SPECIALISED.lower(graph, node, operator, settings)
    return special or lower_convolution(graph, node, operator, "conv2d")
