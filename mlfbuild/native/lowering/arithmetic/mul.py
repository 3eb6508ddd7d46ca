"""MUL."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node, multiply_rescale
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.binary import lower_binary
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_mul_<type>``."""
    return lower_binary(graph, node, "mlf_mul_quantization", lambda *tensors: {"output": multiply_rescale(*tensors)})
