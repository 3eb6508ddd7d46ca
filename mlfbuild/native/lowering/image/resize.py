"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.library.cgen import braces, floating, integer
from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import ResampledLine, ResizeBilinear, ResizeNearestNeighbor
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, record_words, struct_lines, unsupported
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.lowering.common.parameters import constant, input_and_output
from mlfbuild.native.settings import CodegenSettings

_LONGEST = 1 << 20
"""The most rows or columns, because tables have an entry for each."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_resize_nearest`` or ``mlf_resize_bilinear_<type>``."""
    operator = node.operator
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    if max(output.shape[1:3]) > _LONGEST:
        raise unsupported(node, f"images are resized to at most {_LONGEST} rows or columns, and {output} has more")
    batches, *image, channels = source.shape
    sizes = {"input": braces(image), "output": braces(output.shape[1:3]), "channels": channels}
    shape = struct_lines("mlf_resize", "shape", {"batches": batches, **sizes})
    lengths = list(zip(image, output.shape[1:3], strict=True))
    if isinstance(operator, ResizeNearestNeighbor):
        tables = [
            constant(replace(Constant.array(name, "int32_t", operator.positions(*length)), fixed=True))
            for name, length in zip(("rows", "columns"), lengths, strict=True)
        ]
        pixel = source.shape[3] * source.dtype.size
        return KernelCall("resize_nearest", "resize.h", (
            *tables,
            Parameter("const void *", "input", source.name),
            Parameter("void *", "output", output.name),
        ), (*shape, f"mlf_resize_nearest(&shape, {pixel}, rows, columns, input, output);"))  # fmt: skip
    assert isinstance(operator, ResizeBilinear)
    kind, header = suffix(source.dtype), "resize.h"
    if operator.half_up:
        kind, header = f"half_up_{kind}", "resize_half_up.h"
    lines = [
        constant(_table(name, operator.line(*length, source.dtype), kind))
        for name, length in zip(("rows", "columns"), lengths, strict=True)
    ]
    return KernelCall("resize_bilinear", header, (
        *lines,
        *input_and_output(source, output),
    ), (*shape, f"mlf_resize_bilinear_{kind}(&shape, rows, columns, input, output);"))  # fmt: skip


def _table(name: str, line: ResampledLine, kind: str) -> Constant:
    share = floating if kind == "float" else integer
    pixels = list(zip(line.lower.tolist(), line.upper.tolist(), line.share.tolist(), strict=True))
    records = [f"{{{lower}, {upper}, {share(part)}}}" for lower, upper, part in pixels]
    words = record_words("i4,i4,f4" if kind == "float" else "i4,i4,i4", pixels)
    return replace(Constant.records(name, f"mlf_line_{kind}", records, 4, lambda: words), fixed=True)
