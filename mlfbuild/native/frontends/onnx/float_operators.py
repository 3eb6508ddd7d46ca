"""Find the operators of a quantised network that run in float32 with the reason, and tensors with larger scales.

An operator has no integer form if a tensor around it is not quantised, its weights have an unsupported form, its scales
do not fit, or the compiler has none for its type. A user can change the first three by quantising differently, so
``compile`` and ``build`` print the list, and the archive records it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mlfbuild.core import shown
from mlfbuild.native.frontends.onnx.affine import Affine
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.frontends.onnx.raw_graph import RawNode
from mlfbuild.native.graph import DType, Graph, Node, Tensor, ops
from mlfbuild.native.graph.bases import Movement

_QUANTIZING = frozenset({"DequantizeLinear", "QuantizeLinear"})
_CONVERTING = (Movement, ops.Cast, ops.Dequantize, ops.Gather, ops.Quantize, ops.Reshape, ops.Transpose)
"""Operators that convert or move float32 numbers and compute none."""
_WEIGHTED = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})


@dataclass(frozen=True)
class FloatOperator:
    """A node that was converted to operators on float32."""

    place: str
    reason: str
    nodes: tuple[Node, ...]
    """The operators of the graph."""


def is_quantized(nodes: Sequence[RawNode]) -> bool:
    """Return whether a network has quantised tensors."""
    return any(node.operator in _QUANTIZING for node in nodes)


def float_operator(op: OpContext, nodes: Sequence[Node], tensors: Sequence[Tensor]) -> FloatOperator | None:
    """Return the node of ``op`` if one of ``nodes``, into which it was converted, computes float32 ``tensors``."""
    if op.node.operator in _QUANTIZING:
        return None
    floats = {tensor.name for tensor in tensors if tensor.dtype is DType.FLOAT32}
    computing = tuple(
        node for node in nodes if floats.intersection(node.outputs) and not isinstance(node.operator, _CONVERTING)
    )
    return FloatOperator(op.node.place, _reason(op), computing) if computing else None


def notes(found: Sequence[FloatOperator], graph: Graph, renamed: Collection[tuple[str, str]]) -> list[str]:
    """Return a sentence for each operator that still runs in float32 in ``graph``, whose outputs are ``renamed``."""
    names = dict(renamed)
    # Tables and folded constants replace some of them later.
    kept = {(node.operator.name, name) for node in graph.nodes for name in node.outputs}
    return [
        f"{one.place} runs in float32, because {one.reason}"
        for one in found
        if any((node.operator.name, names.get(name, name)) in kept for node in one.nodes for name in node.outputs)
    ]


def stretched(activations: Sequence[Affine]) -> list[str]:
    """Return a sentence if some ``activations`` are held with a larger scale than their own."""
    count = sum(affine.holder is DType.INT16 and not affine.centred for affine in activations)
    if not count:
        return []
    reason = "have 16 bits and a zero point outside the middle of the range, so they are stored with larger scales"
    advice = "results may differ by several steps from other runtimes; quantise with ActivationSymmetric to avoid this"
    return [f"{count} of {len(activations)} quantised tensors {reason}: {advice}"]


def _reason(op: OpContext) -> str:
    computed = [index for index in range(len(op.node.inputs)) if op.has(index) and not op.is_constant(index)]
    values = [op.held(index) for index in computed]
    for index, value in zip(computed, values, strict=True):
        if value.dtype is DType.FLOAT32 and value.quantization is None:
            return f"its input {shown(op.node.inputs[index])} is not quantised"
    if op.target is None:
        return "its output is not quantised, or not in one way"
    if op.node.operator in _WEIGHTED and op.is_constant(1):
        weights = op.quantized(1)
        if weights is None:
            return "its weights are not quantised"
        if weights.differences(weights.affine.axis % max(weights.stored.ndim, 1)) is None:
            return f"its weights are {weights.stored.dtype.name}"
    if op.refused:
        return f"its scales do not allow integers: {op.refused[-1]}"
    stored = next((value.tensor.dtype.value for value in values if value.quantization is not None), "integers")
    return f"it has no integer form for {stored} with these attributes and scales"
