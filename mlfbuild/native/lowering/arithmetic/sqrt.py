"""SQRT, RSQRT and SQUARE."""

from __future__ import annotations

from mlfbuild.library.cgen import floating
from mlfbuild.native.graph import DType, Graph, Node
from mlfbuild.native.graph.ops import Rsqrt, Sqrt
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.unary import lower_rescaled_int16, lower_unary, unary_call, unary_tensors
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_<operator>_<type>``, or of a table."""
    source, output = unary_tensors(graph, node)
    if source.dtype is DType.INT16 and isinstance(node.operator, Sqrt):
        # No multiplier: the kernel computes the root of int16 in float32, with both scales.
        scales = (floating(source.affine.scale), floating(output.affine.scale))
        return unary_call(node.operator, source, output, "sqrt_int16", scales)
    if source.dtype is DType.INT16 and isinstance(node.operator, Rsqrt):
        return lower_rescaled_int16(node.operator, source, output, node.operator.rescale(source, output))
    return lower_unary(node.operator, source, output)
