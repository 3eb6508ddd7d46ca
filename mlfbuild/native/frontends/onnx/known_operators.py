"""The operators that are imported, those that are computed for each value of a parameter, and those in float32.

An operator has no integer form if a tensor around it is not quantised, its weights have an unsupported form, its scales
do not fit, or the compiler has none for its type. A user can change the first three by quantising differently, so
``compile`` and ``build`` print the list with the reasons, and the archive records it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlfbuild.core import UnsupportedModelError, listed, shown
from mlfbuild.native.frontends.onnx.affine import Affine
from mlfbuild.native.frontends.onnx.control_flow import CONTROL_FLOW, Body
from mlfbuild.native.frontends.onnx.declared_shapes import Choice
from mlfbuild.native.frontends.onnx.expansion import EXPANDED
from mlfbuild.native.frontends.onnx.folding import FOLDABLE
from mlfbuild.native.frontends.onnx.normalise import DOMAINS
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.frontends.onnx.operators import OPERATORS
from mlfbuild.native.frontends.onnx.raw_graph import RawModel, RawNode
from mlfbuild.native.frontends.onnx.reader import ML_DOMAIN
from mlfbuild.native.frontends.onnx.refused import REFUSED, SEE, Refusals, refusal
from mlfbuild.native.graph import DType, Graph, Node, Tensor, ops
from mlfbuild.native.graph.bases import Movement

# All results are computed in every run.
MOST = 8
"""Values of one parameter."""


def one_of(body: Body, index: int, choice: Choice) -> Iterator[RawNode]:
    """Yield the nodes that compute the node of ``body`` with the value in ``choice`` that its input ``index`` has."""
    node, name = body.node, body.node.inputs[index]
    if len(choice.values) > MOST:
        raise UnsupportedModelError(
            "input-not-constant",
            place=node.place,
            reason=f"{name!r} must be constant, because it may have {len(choice.values)} values",
            hint=f"make it constant, or declare a shape of the result that at most {MOST} values lead to",
        )
    body.around.notes.append(
        f"{node.place}: {len(choice.values)} results are computed, because {name!r} is computed in every run"
    )
    row, each, key = body.name("row"), body.name("keys of the elements"), body.name("key")
    yield body.make("Reshape", [name, body.number("one dimension", np.array([-1]))], row)
    yield body.make("Gather", [body.number("keys", np.array(choice.keys)), row], each, {"axis": 0})
    yield body.make("ReduceSum", [each], key, {"keepdims": 0})
    selected = ""
    for position, (number, value) in enumerate(choice.values.items()):
        known = body.number(f"value {position}", np.array(value, np.int64))
        made = body.name("result", position)
        yield replace(node, inputs=(*node.inputs[:index], known, *node.inputs[index + 1 :]), outputs=(made,))
        if selected:
            last = position == len(choice.values) - 1
            equal, result = body.name("is", position), node.outputs[0] if last else body.name("selected", position)
            yield body.make("Equal", [key, body.number(f"key {position}", np.array(number, np.int64))], equal)
            yield from body.selected(equal, made, selected, result)
            made = result
        selected = made


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


EXPANDED_DOMAINS = (*DOMAINS, "com.microsoft")
"""Domains whose operators are rewritten as operators of ONNX's own domain."""
KNOWN = frozenset({*OPERATORS, *FOLDABLE, *EXPANDED, *CONTROL_FLOW})
"""The operators of ONNX's own domains that are imported."""


def check_operators(raw: RawModel, refusals: Refusals) -> None:
    """Record the operators of ``raw`` that cannot be imported, those without a reason of their own together."""
    missing: dict[tuple[str, str], RawNode] = {}
    for node in raw.nodes:
        if not is_supported(node):
            missing.setdefault((node.domain, node.operator), node)
    others = [node for node in missing.values() if node.operator not in REFUSED]
    together = unsupported_operators(others) if others else None
    for node in missing.values():
        refusals.add_operator(node, together if together and node in others else unsupported_operators([node]))


def is_supported(node: RawNode) -> bool:
    """Return whether the operator of ``node`` is one that can be imported."""
    if node.domain in (*DOMAINS, ML_DOMAIN):
        return node.operator in KNOWN
    return node.operator in EXPANDED and node.domain in EXPANDED_DOMAINS


def unsupported_operators(nodes: Sequence[RawNode]) -> UnsupportedModelError:
    """Return the error for the unsupported operators of ``nodes``; its place is the first node."""
    first = nodes[0]
    if first.operator in REFUSED:
        return refusal(first.place, first.operator)
    names = listed([shown(node.qualified) for node in nodes])
    return UnsupportedModelError(
        "operator-unsupported",
        place=first.place,
        reason=f"operator {names} is not supported" if len(nodes) == 1 else f"operators {names} are not supported",
        hint=SEE,
    )
