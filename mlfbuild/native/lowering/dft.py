"""DFT."""

from __future__ import annotations

from mlfbuild.library.cgen import floating
from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import Dft
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, ScratchBuffer, struct_lines
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return a call whose scratch memory has two transforms: those of a stage and of the next."""
    operator = node.operator
    assert isinstance(operator, Dft)
    (source, *rest), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert source is not None
    window = rest[0] if rest else None
    packed = operator.packed(source)
    size = operator.length // 2 if packed else operator.length
    fields = {
        **{
            name: str(number) for name, number in zip(("outer", "samples", "inner", "parts"), source.shape, strict=True)
        },
        "frames": str(output.shape[1]),
        "step": str(operator.step),
        "length": str(operator.length),
        "bins": str(output.shape[2]),
        "result_parts": str(output.shape[4]),
        "mirrored": str(int(operator.mirrored)),
        "scale": floating(1 / operator.length if operator.inverse else 1.0),
    }
    pointer = "0" if window is None else "window"
    return KernelCall("dft", "dft.h", (
        Parameter("const float *", "roots", Constant.array("roots", "float", operator.unit_roots().reshape(-1))),
        Parameter("const float *", "input", source.name),
        *(() if window is None else (Parameter("const float *", "window", window.name),)),
        Parameter("float *", "work", ScratchBuffer(4 * size * source.dtype.size)),
        Parameter("float *", "output", output.name),
    ), (
        *struct_lines("mlf_dft", "shape", fields),
        f"mlf_dft_float(&shape, {int(packed)}, roots, input, {pointer}, work, output);",
    ))  # fmt: skip
