"""SignalFramer, SignalStacker, SignalOverlapAdd and COL2IM."""

from __future__ import annotations

from mlfbuild.library.cgen import braces
from mlfbuild.native.graph import DType, Graph, Node
from mlfbuild.native.graph.ops import Col2Im, SignalFramer, SignalOverlapAdd, SignalStacker
from mlfbuild.native.lowering.call import KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.common.parameters import reads, writes
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of the kernel of ``node``."""
    operator, outputs = node.operator, graph.outputs_of(node)
    source = graph.inputs_of(node)[0]
    if isinstance(operator, Col2Im):
        names = ("size", "filter", "stride", "dilation", "before", "counts")
        fields = {"images": str(source.shape[0]), **{name: braces(getattr(operator, name)) for name in names}}
        return KernelCall("col2im", "framing.h", (
            reads("input", source),
            writes("output", outputs[0]),
        ), (*struct_lines("mlf_col2im", "shape", fields), "mlf_col2im_float(&shape, input, output);"))  # fmt: skip
    if isinstance(operator, SignalOverlapAdd):
        *_, frames, size = source.shape
        sizes = f"{source.elements // frames // size}, {frames}, {size}, {operator.step}"
        kind = "float" if source.dtype is DType.FLOAT32 else "int16"
        return KernelCall(f"signal_overlap_add_{kind}", "framing.h", (
            reads("input", source),
            writes("state", outputs[1]),
            writes("output", outputs[0]),
        ), (f"mlf_signal_overlap_add_{kind}({sizes}, input, state, output);",), updates=((1, 1),))  # fmt: skip
    if isinstance(operator, SignalFramer):
        size = source.shape[-1]
        name = "signal_framer"
        sizes = (
            f"{source.elements // size}, {size // operator.step}, {operator.step}, {operator.size}, {operator.kept}, "
            f"{operator.late}"
        )
    else:
        # Both states are the rows that overlap with the next run, and a number that counts them.
        assert isinstance(operator, SignalStacker)
        name = "signal_stacker"
        sizes = f"{operator.channels}, {operator.left}, {operator.left + operator.right}, {operator.step}"
    return KernelCall(name, "framing.h", (
        reads("input", source),
        writes("state", outputs[2]),
        writes("output", outputs[0]),
        Parameter("bool *", "full", outputs[1].name),
    ), (f"mlf_{name}({sizes}, input, state, output, full);",), updates=((1, 2),))  # fmt: skip
