"""PAD, PADV2 and MIRROR_PAD."""

from __future__ import annotations

from mlfbuild.library.cgen import braces, integer
from mlfbuild.native.graph import C_TYPES, DType, Graph, Node, Tensor
from mlfbuild.native.graph.ops import MirrorPad, Pad
from mlfbuild.native.lowering.call import KernelCall, struct_lines, unsupported
from mlfbuild.native.lowering.common import movement
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.lowering.common.parameters import input_and_output
from mlfbuild.native.lowering.trained import trained
from mlfbuild.native.settings import CodegenSettings

_DIMENSIONS = 5
_QUANTIZED = frozenset({DType.FLOAT32, DType.INT8, DType.INT16})
"""Types of images, which are padded with the stored value of 0; the numbers of others belong to the structure."""


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_pad_<type>``; MIRROR_PAD is lowered as a movement of elements."""
    operator = node.operator
    if isinstance(operator, MirrorPad):
        return movement.lower(graph, node, settings)
    assert isinstance(operator, Pad)
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    shape = struct_lines("mlf_padding", "shape", _padding_fields(node, operator, source))
    value = operator.value(output)
    number = float(value) if source.dtype is DType.FLOAT32 else int(value)
    c_type = "" if source.dtype is DType.FLOAT32 else C_TYPES[source.dtype]
    text = trained(number, c_type) if source.dtype in _QUANTIZED else integer(int(value))
    statement = f"mlf_pad_{suffix(source.dtype)}(&shape, {text}, input, output);"
    return KernelCall("pad", "pad.h", (
        *input_and_output(source, output),
    ), (*shape, statement))  # fmt: skip


def _padding_fields(node: Node, operator: Pad, source: Tensor) -> dict[str, str]:
    """Return the fields of a ``struct mlf_padding``; a dimension that is not padded is merged into the one before."""
    merged: list[tuple[int, int, int]] = []
    for size, (before, after) in zip(source.shape, operator.paddings, strict=True):
        if merged and before == after == 0:
            # A dimension without padding is contiguous with the one before: paddings become multiples of its size.
            merged[-1] = (merged[-1][0] * size, merged[-1][1] * size, merged[-1][2] * size)
        else:
            merged.append((size, before, after))
    if len(merged) > _DIMENSIONS:
        raise unsupported(node, f"{source} is padded in more than {_DIMENSIONS} dimensions")
    merged = [(1, 0, 0)] * (_DIMENSIONS - len(merged)) + merged
    return {
        "input": braces([size for size, _, _ in merged]),
        "output": braces([size + before + after for size, before, after in merged]),
        "before": braces([before for _, before, _ in merged]),
    }
