"""DIV."""

from __future__ import annotations

from mlfbuild.compilers.native.lowering.binary import lower_binary
from mlfbuild.compilers.native.lowering.call import KernelCall
from mlfbuild.compilers.native.settings import CodegenSettings
from mlfbuild.graph import Graph, Node
from mlfbuild.graph.ops import Div


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_div_<type>``."""
    operator = node.operator
    assert isinstance(operator, Div)
    return lower_binary(graph, node, "mlf_div_quantization", lambda *tensors: {"output": operator.numbers(*tensors)})
