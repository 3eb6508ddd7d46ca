"""SignalDelay, SignalWindow, SignalFftAutoScale and SignalEnergy."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import SignalDelay, SignalEnergy, SignalWindow
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.candidates import choose_core
from mlfbuild.native.lowering.common.parameters import reads, writes
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the kernel of ``node``."""
    operator, outputs = node.operator, graph.outputs_of(node)
    if not isinstance(operator, SignalDelay):
        return choose_core(settings, "spectrum", lambda core: _call(graph, node, core), {"_mve": "", "_dsp": ""})
    source = graph.inputs_of(node)[0]
    size = source.shape[-1]
    sizes = f"{source.elements // size}, {size}, {operator.length}"
    return KernelCall("signal_delay", "spectrum.h", (
        reads("input", source),
        writes("state", outputs[1]),
        writes("output", outputs[0]),
    ), (f"mlf_signal_delay({sizes}, input, state, output);",), updates=((1, 1),))  # fmt: skip


def _call(graph: Graph, node: Node, core: str) -> KernelCall:
    """Return the call of the kernel with the suffix ``core``."""
    operator, outputs = node.operator, graph.outputs_of(node)
    source, *others = graph.inputs_of(node).present
    samples = reads("input", source)
    if isinstance(operator, SignalWindow):
        (weights,) = others
        sizes = f"{source.elements // weights.elements}, {weights.elements}, {operator.shift}"
        return KernelCall("signal_window", f"spectrum{core}.h", (
            samples,
            reads("weights", weights),
            writes("output", outputs[0]),
        ), (f"mlf_signal_window{core}({sizes}, input, weights, output);",))  # fmt: skip
    if isinstance(operator, SignalEnergy):
        sizes = f"{operator.start}, {operator.end}, {outputs[0].elements}"
        return KernelCall("signal_energy", f"spectrum{core}.h", (
            samples,
            writes("output", outputs[0]),
        ), (f"mlf_signal_energy{core}({sizes}, input, output);",))  # fmt: skip
    return KernelCall("signal_fft_auto_scale", f"spectrum{core}.h", (
        samples,
        writes("output", outputs[0]),
        writes("exponent", outputs[1]),
    ), (f"mlf_signal_fft_auto_scale{core}({source.elements}, input, output, exponent);",))  # fmt: skip
