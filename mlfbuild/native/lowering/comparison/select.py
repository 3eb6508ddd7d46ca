"""SELECT_V2."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.activation import moved_as, signed_pointer, suffix
from mlfbuild.native.lowering.common.broadcast import broadcast_lines, in_place
from mlfbuild.native.lowering.common.parameters import reads, writes
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_select_<type>``."""
    sources = list(graph.inputs_of(node).present)
    (output,) = graph.outputs_of(node)
    parameters = [reads(name, tensor) for name, tensor in zip(("first", "second", "third"), sources, strict=True)]
    dtype = output.dtype
    # Unsigned types are moved by the kernels of the signed types of their size.
    pointers = [signed_pointer(name, dtype, "const ") for name in ("second", "third")]
    pointers.append(signed_pointer("output", dtype))
    return KernelCall("select", "select.h", (*parameters, writes("output", output)), (
        *broadcast_lines(node, sources, output, "mlf_selection"),
        f"mlf_select_{suffix(moved_as(output.dtype))}(&shape, first, {', '.join(pointers)});",
    ), in_place(sources, output))  # fmt: skip
