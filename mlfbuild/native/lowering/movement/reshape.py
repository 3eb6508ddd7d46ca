"""RESHAPE, for inputs and outputs that the memory plan could not place at the same address."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return a call that copies the bytes."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    # Only the header with the declaration of memcpy is needed.
    return KernelCall("reshape", "compiler.h", (
        Parameter("const void *", "input", source.name),
        Parameter("void *", "output", output.name),
    ), (f"memcpy(output, input, {source.size});",))  # fmt: skip
