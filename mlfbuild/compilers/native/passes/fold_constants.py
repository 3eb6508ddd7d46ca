"""Nodes that read only constants are computed now."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.compilers.native.passes.rewrite import rebuild
from mlfbuild.graph import Graph, Node, Tensor

_ALWAYS_FOLDED = 1 << 16
"""Bytes of results that are folded however small the operands are."""


def fold_constants(graph: Graph) -> Graph:
    """Replace each node whose inputs are all constant by its value, from the operator's numpy reference."""
    known: dict[str, Tensor] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        inputs = [None if name is None else known.get(name, graph.tensor(name)) for name in node.inputs]
        if all(tensor is None or tensor.constant for tensor in inputs) and _worth_its_flash(graph, node):
            values = [None if tensor is None else tensor.data for tensor in inputs]
            outputs = graph.outputs_of(node)
            results = node.operator.reference(inputs, values, outputs)
            for tensor, value in zip(outputs, results, strict=True):
                known[tensor.name] = replace(tensor, data=value)
        else:
            kept.append(node)
    return rebuild(graph, kept, tuple(known.values()))


def _worth_its_flash(graph: Graph, node: Node) -> bool:
    # A PAD of a few bytes may fill gigabytes: folding it would cost flash, and the compiler its memory.
    operands = sum(tensor.size for tensor in graph.inputs_of(node) if tensor is not None)
    return sum(tensor.size for tensor in graph.outputs_of(node)) <= max(_ALWAYS_FOLDED, operands)
