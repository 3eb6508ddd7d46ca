"""QUANTIZE, DEQUANTIZE and DYNAMIC_QUANTIZE."""

from __future__ import annotations

from mlfbuild.native.graph import DType, Graph, Node, Tensor, requantize_rescale
from mlfbuild.native.graph.ops import Dequantize, Quantize
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.activation import suffix, zero_point
from mlfbuild.native.lowering.common.parameters import input_and_output, rescaling_parameter
from mlfbuild.native.lowering.common.unary import lower_unary
from mlfbuild.native.lowering.trained import trained
from mlfbuild.native.settings import CodegenSettings

_TABLE = 256
"""The bytes of a table, and the elements for which one is made: a table takes a quarter of the cycles."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_quantize_<from>_<to>`` or ``mlf_dequantize_<from>``."""
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    if isinstance(node.operator, Dequantize):
        return _elementwise("dequantize", f"dequantize_{suffix(source.dtype)}", source, output, source)
    # A table is made if LiteRT computes in float32, as for uint8, or if there are many elements.
    if isinstance(node.operator, Quantize) and (node.operator.in_float32 or _is_long(source, output)):
        return lower_unary(node.operator, source, output)
    kernel = f"quantize_{suffix(source.dtype)}_{suffix(output.dtype)}"
    if source.dtype is DType.FLOAT32:
        return _elementwise("quantize", kernel, source, output, output)
    header = "quantize_int32.h" if source.dtype is DType.INT32 else "quantize.h"
    return KernelCall("quantize", header, (
        rescaling_parameter(source, output, requantize_rescale(source, output)),
        *input_and_output(source, output),
    ), (f"mlf_{kernel}({source.elements}, rescaling, input, output);",), _in_place(source, output))  # fmt: skip


def _is_long(source: Tensor, output: Tensor) -> bool:
    """Return whether int8 is brought to another scale for so many elements that a table is worth its flash."""
    return source.dtype is output.dtype is DType.INT8 and source.elements >= _TABLE


def _elementwise(word: str, kernel: str, source: Tensor, output: Tensor, quantized: Tensor) -> KernelCall:
    scale, point = trained(quantized.affine.scale), trained(zero_point(quantized))
    line = f"mlf_{kernel}({source.elements}, {scale}, {point}, input, output);"
    return KernelCall(word, "quantize.h", input_and_output(source, output), (line,), _in_place(source, output))


def _in_place(source: Tensor, output: Tensor) -> tuple[int, ...]:
    """Return the input if the output may overwrite it: elements are read in order and must not become larger."""
    return (0,) if output.dtype.size <= source.dtype.size else ()
