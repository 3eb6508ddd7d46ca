"""LOGICAL_AND, LOGICAL_OR and LOGICAL_NOT."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import LogicalNot
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.lowering.common.binary import lower_binary
from mlfbuild.native.lowering.common.broadcast import in_place
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_<operator>_uint8``."""
    if not isinstance(node.operator, LogicalNot):
        return lower_binary(graph, node)
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    return KernelCall("logical_not", "logical.h", (
        Parameter("const uint8_t *", "input", source.name),
        Parameter("uint8_t *", "output", output.name),
    # Both have elements of one byte.
    ), (f"mlf_logical_not_uint8({source.elements}, input, output);",), in_place((source,), output))  # fmt: skip
