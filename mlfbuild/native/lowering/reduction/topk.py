"""TOPK_V2."""

from __future__ import annotations

from mlfbuild.native.graph import C_TYPES, Graph, Node
from mlfbuild.native.graph.ops import TopkV2
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_topk_greatest_<type>`` or ``mlf_topk_least_<type>``."""
    operator = node.operator
    assert isinstance(operator, TopkV2)
    (source,), (values, positions) = graph.inputs_of(node), graph.outputs_of(node)
    c_type, size = C_TYPES[source.dtype], source.shape[-1]
    kernel = f"mlf_topk_{'least' if operator.least else 'greatest'}_{suffix(source.dtype)}"
    sizes = f"{source.elements // size}, {size}, {operator.k}"
    return KernelCall("topk_v2", "topk.h", (
        Parameter(f"const {c_type} *", "input", source.name),
        Parameter(f"{c_type} *", "values", values.name),
        Parameter("int32_t *", "positions", positions.name),
    ), (f"{kernel}({sizes}, input, values, positions);",))  # fmt: skip
