"""PAIRWISE_COUPLING."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.lowering.call import KernelCall, Parameter, ScratchBuffer
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_pairwise_coupling_float``."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    rows, classes = output.shape
    scratch = ScratchBuffer(classes * (2 * classes + 1) * output.dtype.size)
    return KernelCall("pairwise_coupling", "pairwise_coupling.h", (
        Parameter("const float *", "input", source.name),
        Parameter("float *", "output", output.name),
        Parameter("float *", "scratch", scratch),
    ), (f"mlf_pairwise_coupling_float({rows}, {classes}, input, output, scratch);",))  # fmt: skip
