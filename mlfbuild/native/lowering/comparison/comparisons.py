"""EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS and LESS_EQUAL."""

from __future__ import annotations

from mlfbuild.native.graph import DType, Graph, Node, Tensor, comparison_rescale
from mlfbuild.native.graph.ops import Ordering
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.binary import Fields, lower_binary
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_<operator>_<type>``; both inputs of an int16 ordering have the same scale."""
    source = graph.inputs_of(node)[0]
    # Equal scales: stored values are compared as they are.
    if isinstance(node.operator, Ordering) and source.dtype is DType.INT16:
        return lower_binary(graph, node)
    return lower_binary(graph, node, "mlf_comparison_quantization", _rescales)


def _rescales(first: Tensor, second: Tensor, _output: Tensor) -> Fields:
    return {"first": comparison_rescale(first), "second": comparison_rescale(second)}
