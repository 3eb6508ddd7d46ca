"""ERF of float32."""

from __future__ import annotations

from mlfbuild.compilers.native.ops.call import Call, Parameter
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import Graph, Node


def lower(graph: Graph, node: Node, _settings: Settings) -> Call:
    """Return the call that computes element by element."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert source is not None
    operands = (Parameter("const float *", "input", source.name), Parameter("float *", "output", output.name))
    return Call("erf", "erf.h", operands, (f"mlf_erf_float({source.elements}, input, output);",), (0,))
