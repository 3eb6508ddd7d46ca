"""DETERMINANT."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.lowering.call import KernelCall, Parameter, ScratchBuffer
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_determinant_float``, which changes a copy of each matrix."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    rows = source.shape[-1]
    return KernelCall("determinant", "determinant.h", (
        Parameter("const float *", "input", source.name),
        # Elimination overwrites the matrix, and the input must stay as it is.
        Parameter("float *", "matrix", ScratchBuffer(rows * rows * source.dtype.size)),
        Parameter("float *", "output", output.name),
    ), (f"mlf_determinant_float({output.elements}, {rows}, input, matrix, output);",))  # fmt: skip
