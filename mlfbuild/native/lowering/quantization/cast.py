"""CAST and BIT_CAST."""

from __future__ import annotations

from mlfbuild.native.graph import C_TYPES, DType, Graph, Node
from mlfbuild.native.graph.ops import BitCast
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.lowering.common.broadcast import in_place
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_cast_<from>_<to>``, or a copy of the bytes."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    # The same bytes: neither type nor value matters to a copy.
    if isinstance(node.operator, BitCast):
        return KernelCall("bit_cast", "compiler.h", (
            Parameter("const void *", "input", source.name),
            Parameter("void *", "output", output.name),
        ), (f"memcpy(output, input, {source.size});",))  # fmt: skip
    target = "bool" if output.dtype is DType.BOOL else suffix(output.dtype)
    call = f"mlf_cast_{suffix(source.dtype)}_{target}({source.elements}, input, output);"
    return KernelCall("cast", "cast.h", (
        Parameter(f"const {C_TYPES[source.dtype]} *", "input", source.name),
        Parameter(f"{C_TYPES[output.dtype]} *", "output", output.name),
    ), (call,), in_place((source,), output))  # fmt: skip
