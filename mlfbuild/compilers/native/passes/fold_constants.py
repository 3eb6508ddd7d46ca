"""Compute nodes that read only constants."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.compilers.native.passes.rewrite import rebuild
from mlfbuild.graph import Graph, Node, Tensor

_ALWAYS_FOLDED = 1 << 16
"""Results of at most this many bytes are folded even if they are larger than the operands."""


def fold_constants(graph: Graph) -> Graph:
    """Replace each node whose inputs are all constant by its value, which the operator's numpy reference computes.

    Nodes whose result is much larger than their operands stay.
    """
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
    # The result of a PAD of a few bytes can have gigabytes, which would fill flash and the compiler's memory.
    operands = sum(tensor.size for tensor in graph.inputs_of(node) if tensor is not None)
    return sum(tensor.size for tensor in graph.outputs_of(node)) <= max(_ALWAYS_FOLDED, operands)
