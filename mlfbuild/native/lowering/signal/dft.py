"""DFT, RFFT2D, and the parts of complex numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlfbuild.library.cgen import floating
from mlfbuild.native.graph import DType, Graph, Node
from mlfbuild.native.graph.ops import Dft, Rfft2d
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, ScratchBuffer, struct_lines
from mlfbuild.native.lowering.common.parameters import reads, writes
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return a call whose scratch memory has two transforms: those of a stage and of the next."""
    operator = node.operator
    if isinstance(operator, Rfft2d):
        return _rfft2d(graph, node, operator)
    assert isinstance(operator, Dft)
    inputs, (output,) = graph.inputs_of(node), graph.outputs_of(node)
    source, window = inputs[0], inputs.optional(1)
    packed = operator.packed(source.shape)
    pointer = "0" if window is None else "window"
    return KernelCall("dft", "dft.h", (
        _roots("roots", operator),
        reads("input", source),
        *(() if window is None else (reads("window", window),)),
        _work(operator.size(source.shape)),
        writes("output", output),
    ), (
        *struct_lines("mlf_dft", "shape", _fields(operator, source.shape, output.shape)),
        f"mlf_dft_float(&shape, {int(packed)}, roots, input, {pointer}, work, output);",
    ))  # fmt: skip


def _rfft2d(graph: Graph, node: Node, operator: Rfft2d) -> KernelCall:
    """Return a call that transforms rows, then columns: in place, unless rows are cut or padded."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    count, columns, bins = source.shape[-2], source.shape[-1], output.shape[-2]
    images = math.prod(source.shape[:-2])
    samples, spectra = (images * count, columns, 1, 1), (images, count, bins, 2)
    rows, lines = operator.rows(), operator.columns()
    # A single row needs no second transform.
    alone = count == operator.height == 1
    # Rows that are cut or padded need memory between the two transforms, since the output has other rows.
    moved = count != operator.height
    between = "spectra" if moved else "output"
    work = max(rows.size(samples), 0 if alone else lines.size(spectra))
    body = [
        *struct_lines("mlf_dft", "rows", _fields(rows, samples, (images * count, 1, bins, 1, 2))),
        *(
            ()
            if alone
            else struct_lines("mlf_dft", "columns", _fields(lines, spectra, (images, 1, operator.height, bins, 2)))
        ),
        f"mlf_dft_float(&rows, {int(rows.packed(samples))}, row_roots, input, 0, work, {between});",
    ]
    if not alone:
        body.append(f"mlf_dft_float(&columns, 0, column_roots, {between}, 0, work, output);")
    return KernelCall("rfft2d", "dft.h", (
        _roots("row_roots", rows),
        *(() if alone else (_roots("column_roots", lines),)),
        reads("input", source),
        _work(work),
        *((Parameter("float *", "spectra", ScratchBuffer(math.prod(spectra) * DType.FLOAT32.size)),) if moved else ()),
        writes("output", output),
    ), tuple(body))  # fmt: skip


def _roots(name: str, operator: Dft) -> Parameter:
    return Parameter("const float *", name, Constant.array(name, "float", operator.unit_roots().reshape(-1)))


def _work(size: int) -> Parameter:
    # Two buffers of complex numbers: each stage reads one and writes the other.
    return Parameter("float *", "work", ScratchBuffer(4 * size * DType.FLOAT32.size))


def _fields(operator: Dft, source: Sequence[int], output: Sequence[int]) -> dict[str, str]:
    """Return the fields of the kernel's description of a transform of the shape ``source`` to ``output``."""
    return {
        **{name: str(number) for name, number in zip(("outer", "samples", "inner", "parts"), source, strict=True)},
        "frames": str(output[1]),
        "step": str(operator.step),
        "length": str(operator.length),
        "bins": str(output[2]),
        "result_parts": str(output[4]),
        "mirrored": str(int(operator.mirrored)),
        # The inverse divides by the length, the transform by nothing, as NumPy's ``fft`` does.
        "scale": floating(1 / operator.length if operator.inverse else 1.0),
    }
