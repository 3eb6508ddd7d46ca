"""MUL."""

from __future__ import annotations

import math

from mlfbuild.native.graph import Activation, Graph, Node, Tensor, multiply_rescale
from mlfbuild.native.graph.bases import QUANTIZED, binary_tensors
from mlfbuild.native.graph.ops import Mul
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common import binary
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.lowering.common.broadcast import in_place
from mlfbuild.native.lowering.common.parameters import constant, reads, writes
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_mul_scaled_<type>`` for gates and tensors of one shape, otherwise of the general kernel.

    A gate is one factor for each channel, as in squeeze-and-excite blocks. The kernel has no activation, and needs a
    factor below 1/2.
    """
    assert isinstance(node.operator, Mul)
    # The factor depends on the scales.
    usable = node.operator.activation is Activation.NONE and not settings.replaceable
    tensors = binary_tensors(graph.inputs_of(node), graph.outputs_of(node))
    # A product has no order: gates may be either input.
    for first, second in (tensors[:2], tensors[1::-1]):
        rows = _rows(first, second)
        if rows and first.dtype in QUANTIZED and usable:
            return _scaled(node.operator, first, second, tensors[2], rows) or binary.lower(graph, node, settings)
    return binary.lower(graph, node, settings)


def _rows(first: Tensor, second: Tensor) -> int:
    """Return the rows of ``first`` that are multiplied by the same row ``second``; 0 if that is another broadcast."""
    kept = (1,) * (len(first.shape) - len(second.shape)) + second.shape
    size = math.prod(kept)
    columns = next((at for at, length in enumerate(kept) if length > 1), len(kept))
    same = len(kept) == len(first.shape) and kept[columns:] == first.shape[columns:]
    return first.elements // size if same and size > 1 else 0


def _scaled(operator: Mul, first: Tensor, second: Tensor, output: Tensor, rows: int) -> KernelCall | None:
    rescale = multiply_rescale(first, second, output)
    if rescale.shift >= 0 or not rescale.multiplier:
        return None
    quantization = binary.binary_quantization(
        "mlf_mul_quantization", {"output": rescale}, operator, (first, second, output)
    )
    arguments = f"quantization, {rows}, {output.elements // rows}, first, second, output"
    return KernelCall(
        "mul",
        "mul.h",
        (constant(quantization), reads("first", first), reads("second", second), writes("output", output)),
        (f"mlf_mul_scaled_{suffix(first.dtype)}({arguments});",),
        in_place((first, second), output),
    )
