"""QUANTIZE and DEQUANTIZE."""

from __future__ import annotations

from mlfbuild.compilers.native.literals import floating
from mlfbuild.compilers.native.ops.activation import zero_point
from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node, Tensor
from mlfbuild.graph.ops import Dequantize
from mlfbuild.graph.quantize import requantize_rescale


def lower(graph: Graph, node: Node, _settings: Settings) -> Call:
    """Return the call of ``mlf_quantize_float``, ``mlf_quantize_int8`` or ``mlf_dequantize_int8``."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert source is not None
    if isinstance(node.operator, Dequantize):
        return _elementwise("dequantize", "dequantize_int8", source, output, source)
    if source.dtype is DType.FLOAT32:
        return _elementwise("quantize", "quantize_float", source, output, output)
    rescaling = Constant.struct(
        "rescaling",
        "mlf_rescaling",
        {
            "input_zero_point": zero_point(source),
            "output_zero_point": zero_point(output),
            "rescale": requantize_rescale(source, output),
        },
    )
    return Call("quantize", "quantize.h", (
        Parameter("const struct mlf_rescaling *", "rescaling", rescaling),
        Parameter("const int8_t *", "input", source.name),
        Parameter("int8_t *", "output", output.name),
    ), (f"mlf_quantize_int8({source.elements}, rescaling, input, output);",), (0,))  # fmt: skip


def _elementwise(word: str, kernel: str, source: Tensor, output: Tensor, quantized: Tensor) -> Call:
    assert quantized.quantization is not None
    scale = floating(quantized.quantization.scale)
    # Elements are taken in order: those of an output that are not larger may be written over the input.
    in_place = (0,) if source is not quantized else ()
    input_type, output_type = ("int8_t", "float") if source is quantized else ("float", "int8_t")
    return Call(word, "quantize.h", (
        Parameter(f"const {input_type} *", "input", source.name),
        Parameter(f"{output_type} *", "output", output.name),
    ), (f"mlf_{kernel}({source.elements}, {scale}, {zero_point(quantized)}, input, output);",), in_place)  # fmt: skip
