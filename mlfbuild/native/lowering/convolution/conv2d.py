"""CONV_2D."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mlfbuild.native.graph import DType, Graph, Node
from mlfbuild.native.graph.ops import Conv2D
from mlfbuild.native.lowering.call import Candidate, KernelCall
from mlfbuild.native.lowering.common.candidates import Specialised, choose, obstacle
from mlfbuild.native.lowering.common.convolution import lower_convolution, lower_offset
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.convolution.conv2d_4x2_mve import lower_conv2d_4x2_mve
from mlfbuild.native.lowering.convolution.conv2d_dsp import lower_conv2d_dsp
from mlfbuild.native.lowering.convolution.conv2d_float_mve import lower_conv2d_float_mve
from mlfbuild.native.lowering.convolution.conv2d_float_vfp import lower_float_vfp
from mlfbuild.native.lowering.convolution.conv2d_int16_dsp import lower_int16_dsp
from mlfbuild.native.lowering.convolution.conv2d_int16_mve import lower_int16_mve
from mlfbuild.native.lowering.convolution.conv2d_long_dsp import lower_conv2d_long_dsp
from mlfbuild.native.lowering.convolution.conv2d_mve import lower_conv2d_mve
from mlfbuild.native.lowering.convolution.conv2d_offset_dsp import lower_conv2d_offset_dsp
from mlfbuild.native.lowering.convolution.conv2d_thumb import lower_thumb
from mlfbuild.native.settings import CodegenSettings

_SPECIALISED = Specialised[Conv2D](
    lower_conv2d_float_mve, (("4x2_", lower_conv2d_4x2_mve), ("", lower_conv2d_mve)), lower_conv2d_dsp,
    lower_int16_mve, lower_int16_dsp, lower_thumb, lower_float_vfp,
)  # fmt: skip


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the fastest kernel that the CPU and the node permit."""
    assert isinstance(node.operator, Conv2D)
    return choose(tuple(_candidates(Weighted(graph, node, node.operator, settings.replaceable), settings)))


def _candidates(layer: Weighted[Conv2D], settings: CodegenSettings) -> Iterator[Candidate]:
    if layer.has_offset:
        yield Candidate("conv2d_offset_dsp", partial(lower_conv2d_offset_dsp, layer), obstacle(settings, "dsp"))
        yield Candidate("conv2d_offset", partial(lower_offset, layer))
        return
    if layer.output.dtype is DType.INT8:
        # For cores that issue one instruction at a time; with MVE, vectors are faster.
        slow = "is slower on a Cortex-M7 and with Helium" if settings.is_dual_issue or settings.has("mve") else ""
        yield Candidate(
            "conv2d_long_dsp",
            partial(lower_conv2d_long_dsp, layer),
            obstacle(settings, "dsp") or slow,
        )
    yield from _SPECIALISED.candidates(layer, settings)
    yield Candidate("conv2d", partial(lower_convolution, layer))
