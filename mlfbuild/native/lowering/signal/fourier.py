"""SignalRfft and SignalIrfft."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.native.graph import DType, Graph, Node, Tensor
from mlfbuild.native.graph.ops import SignalFourier
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.common.candidates import choose_core
from mlfbuild.native.lowering.common.parameters import constant, input_and_output
from mlfbuild.native.settings import CodegenSettings

_TYPES = {DType.INT16: ("int16", "int16_t"), DType.INT32: ("int32", "int32_t"), DType.FLOAT32: ("float", "float")}


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the kernel of ``node``."""
    operator, (output,) = node.operator, graph.outputs_of(node)
    assert isinstance(operator, SignalFourier)
    source = graph.inputs_of(node)[0]
    if source.dtype is not DType.INT16:
        return _call(operator, source, output, "")
    half = operator.length // 2
    # The kernel transforms powers of two, with at least 16 complex numbers.
    fits = half >= 16 and half & (half - 1) == 0
    limits = {"_mve": "" if fits else "is for lengths that are powers of two from 32 on", "_dsp": ""}
    return choose_core(settings, "fourier", lambda way: _call(operator, source, output, way), limits)


def _call(operator: SignalFourier, source: Tensor, output: Tensor, way: str) -> KernelCall:
    """Return the call of the kernel with the suffix ``way``, which a CPU with the extension has for int16."""
    suffix, c_type = _TYPES[source.dtype]
    factors = operator.factors()
    counts = {name: str(factors.count(size)) for name, size in _STAGES.items()}
    rows = source.elements // source.shape[-1]
    word = "irfft" if operator.inverse else "rfft"
    sizes = f"{rows}" if operator.inverse else f"{rows}, {source.shape[-1]}"
    body = [
        *struct_lines("mlf_fourier", "fourier", {"size": str(operator.length // 2), **counts}),
        f"mlf_signal_{word}_{way[1:] or suffix}(&fourier, {sizes}, roots, order, input, output);",
    ]
    if operator.inverse and source.dtype is DType.FLOAT32:
        # KISS FFT does not scale the inverse, and integers were divided in every stage already.
        body.append(f"mlf_divide_samples({output.elements}, {operator.length}.0f, output);")
    return KernelCall(f"signal_{word}", f"fourier{way}.h", (
        Parameter(f"const {c_type} *", "roots", Constant.array(
            "roots", c_type, operator.roots(source.dtype).reshape(-1)
        )),
        constant(replace(Constant.array("order", "uint16_t", operator.order()), fixed=True)),
        *input_and_output(source, output),
    ), tuple(body))  # fmt: skip


_STAGES = {"fives": 5, "threes": 3, "twos": 2, "fours": 4}
