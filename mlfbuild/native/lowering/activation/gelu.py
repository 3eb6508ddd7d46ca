"""GELU, computed with the error function or approximated with the hyperbolic tangent."""

from __future__ import annotations

from mlfbuild.native.graph import DType, Graph, Node
from mlfbuild.native.graph.ops import Gelu
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.unary import lower_unary, unary_call, unary_tensors
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_gelu_float`` or ``mlf_gelu_tanh_float``, or of a table."""
    source, output = unary_tensors(graph, node)
    assert isinstance(node.operator, Gelu)
    if source.dtype is DType.FLOAT32 and node.operator.approximate:
        # Only float32 has a kernel of its own for each form; integers are tables, which contain the form.
        return unary_call(node.operator, source, output, "gelu_tanh_float")
    return lower_unary(node.operator, source, output)
