"""SignalRfft."""

from __future__ import annotations

from mlfbuild.compilers.native.lowering.call import Constant, KernelCall, Parameter
from mlfbuild.compilers.native.settings import CodegenSettings
from mlfbuild.graph import Graph, Node
from mlfbuild.graph.ops import SignalRfft


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of the kernel of ``node``."""
    operator, (output,) = node.operator, graph.outputs_of(node)
    assert isinstance(operator, SignalRfft)
    source = next(tensor for tensor in graph.inputs_of(node) if tensor is not None)
    sizes = f"{source.elements // source.shape[-1]}, {source.shape[-1]}, {operator.length}"
    return KernelCall("signal_rfft", "fourier.h", (
        Parameter("const int16_t *", "roots", Constant.array("roots", "int16_t", operator.roots().reshape(-1))),
        Parameter("const int16_t *", "input", source.name),
        Parameter("int16_t *", "output", output.name),
    ), (f"mlf_signal_rfft({sizes}, roots, input, output);",))  # fmt: skip
