"""SQUARED_DISTANCES."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_squared_distances_float``."""
    (rows, points), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    sizes = f"{rows.shape[0]}, {points.shape[0]}, {rows.shape[1]}"
    return KernelCall("squared_distances", "squared_distances.h", (
        Parameter("const float *", "input", rows.name),
        Parameter("const float *", "points", points.name),
        Parameter("float *", "output", output.name),
    ), (f"mlf_squared_distances_float({sizes}, input, points, output);",))  # fmt: skip
