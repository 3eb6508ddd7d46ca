"""CAST and LOGICAL_NOT."""

from __future__ import annotations

from mlfbuild.compilers.native.interface import C_TYPES
from mlfbuild.compilers.native.ops.activation import suffix
from mlfbuild.compilers.native.ops.broadcast import in_place
from mlfbuild.compilers.native.ops.call import Call, Parameter
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node
from mlfbuild.graph.ops import LogicalNot


def lower(graph: Graph, node: Node, _settings: Settings) -> Call:
    """Return the call of ``mlf_cast_<from>_<to>`` or ``mlf_logical_not_uint8``."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert source is not None
    target = "bool" if output.dtype is DType.BOOL else suffix(output.dtype)
    header, kernel = "cast.h", f"cast_{suffix(source.dtype)}_{target}"
    if isinstance(node.operator, LogicalNot):
        header, kernel = "comparisons.h", "logical_not_uint8"
    return Call(node.operator.name.lower(), header, (
        Parameter(f"const {C_TYPES[source.dtype]} *", "input", source.name),
        Parameter(f"{C_TYPES[output.dtype]} *", "output", output.name),
    ), (f"mlf_{kernel}({source.elements}, input, output);",), in_place((source,), output))  # fmt: skip
