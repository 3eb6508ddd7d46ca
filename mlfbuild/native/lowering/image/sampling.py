"""GRID_SAMPLE, ROI_ALIGN and DEFORM_CONV."""

from __future__ import annotations

import math

from mlfbuild.library.cgen import braces, floating
from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import DeformConv, GridSample, RoiAlign
from mlfbuild.native.lowering.call import KernelCall, struct_lines
from mlfbuild.native.lowering.common.parameters import reads, writes
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of the kernel of ``node``."""
    operator = node.operator
    if isinstance(operator, GridSample):
        return _grid_sample(graph, node, operator)
    if isinstance(operator, RoiAlign):
        return _roi_align(graph, node, operator)
    assert isinstance(operator, DeformConv)
    return _deform_conv(graph, node, operator)


def _grid_sample(graph: Graph, node: Node, operator: GridSample) -> KernelCall:
    (source, grid), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    sizes = source.shape[1:-1]
    fields = {
        "batches": source.shape[0],
        "positions": math.prod(grid.shape[1:-1]),
        "dimensions": len(sizes),
        "sizes": braces(sizes),
        "channels": source.shape[-1],
        "taps": operator.interpolation.value,
        "outside": operator.outside.value,
        "corners": int(operator.corners),
    }
    return KernelCall("grid_sample", "sampling.h", (
        reads("input", source), reads("grid", grid), writes("output", output)
    ), (
        *struct_lines("mlf_grid_sample", "shape", fields),
        "mlf_grid_sample_float(&shape, input, grid, output);",
    ))  # fmt: skip


def _roi_align(graph: Graph, node: Node, operator: RoiAlign) -> KernelCall:
    (source, boxes, images), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    fields = {
        "boxes": boxes.shape[0],
        **dict(zip(("images", "height", "width", "channels"), source.shape, strict=True)),
        **dict(zip(("rows", "columns"), operator.size, strict=True)),
        "samples": operator.samples,
        "half_pixel": int(operator.half_pixel),
        "greatest": int(operator.greatest),
        "scale": floating(operator.scale),
    }
    return KernelCall("roi_align", "sampling.h", (
        reads("input", source),
        reads("boxes", boxes),
        reads("images", images),
        writes("output", output),
    ), (
        *struct_lines("mlf_roi_align", "shape", fields),
        "mlf_roi_align_float(&shape, input, boxes, images, output);",
    ))  # fmt: skip


def _deform_conv(graph: Graph, node: Node, operator: DeformConv) -> KernelCall:
    inputs, (output,) = graph.inputs_of(node), graph.outputs_of(node)
    (source, filters, offsets, bias), mask = inputs[:4], inputs.optional(4)
    fields = {
        **dict(zip(("batches", "height", "width", "channels"), source.shape, strict=True)),
        **dict(zip(("rows", "columns"), filters.shape, strict=False)),
        **dict(zip(("output_height", "output_width", "outputs"), output.shape[1:], strict=True)),
        "groups": operator.groups,
        "offset_groups": operator.offset_groups,
        "stride": braces(operator.stride),
        "dilation": braces(operator.dilation),
        "before": braces(operator.before),
    }
    pointer = "0" if mask is None else "mask"
    return KernelCall("deform_conv", "sampling.h", (
        reads("input", source),
        reads("filter", filters),
        reads("offsets", offsets),
        reads("bias", bias),
        *(() if mask is None else (reads("mask", mask),)),
        writes("output", output),
    ), (
        *struct_lines("mlf_deform_conv", "shape", fields),
        f"mlf_deform_conv_float(&shape, input, filter, offsets, bias, {pointer}, output);",
    ))  # fmt: skip
