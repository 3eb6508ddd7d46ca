"""CONV_2D."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mlfbuild.native.graph import DType, Graph, Node
from mlfbuild.native.graph.ops import Conv2D
from mlfbuild.native.lowering.call import Candidate, KernelCall
from mlfbuild.native.lowering.common.candidates import Specialised, choose, obstacle
from mlfbuild.native.lowering.common.convolution import has_offset, lower_conv2d_offset, lower_convolution
from mlfbuild.native.lowering.convolution.conv2d_4x2_mve import lower_conv2d_4x2_mve
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
    "conv2d",
    lower_conv2d_float_mve,
    (("4x2_", lower_conv2d_4x2_mve), ("", lower_conv2d_mve)),
    lower_conv2d_dsp,
    lower_conv2d_int16_mve,
    lower_conv2d_int16_dsp,
    lower_conv2d_thumb,
    lower_conv2d_float_vfp,
)


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the fastest kernel that the CPU and the node permit."""
    return choose(tuple(_candidates(graph, node, settings)))


def _candidates(graph: Graph, node: Node, settings: CodegenSettings) -> Iterator[Candidate]:
    operator = node.operator
    assert isinstance(operator, Conv2D)
    if has_offset(graph, node):
        offset_dsp = partial(lower_conv2d_offset_dsp, graph, node, operator)
        yield Candidate("conv2d_offset_dsp", offset_dsp, obstacle(settings, "dsp"))
        yield Candidate("conv2d_offset", partial(lower_conv2d_offset, graph, node, operator))
        return
    if graph.outputs_of(node)[0].dtype is DType.INT8:
        # For cores that issue one instruction at a time; with MVE, vectors are faster.
        slow = "is slower on a Cortex-M7 and with Helium" if settings.is_dual_issue or settings.has("mve") else ""
        long_dsp = partial(lower_conv2d_long_dsp, graph, node, operator)
        yield Candidate("conv2d_long_dsp", long_dsp, obstacle(settings, "dsp") or slow)
    yield from _SPECIALISED.candidates(graph, node, operator, settings)
    yield Candidate("conv2d", partial(lower_convolution, graph, node, operator, "conv2d"))
