"""DIV."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import Div
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.binary import lower_binary
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_div_<type>``."""
    operator = node.operator
    assert isinstance(operator, Div)
    return lower_binary(graph, node, "mlf_div_quantization", lambda *tensors: {"output": operator.numbers(*tensors)})
