"""Compute nodes that read only constants."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.native.graph import Graph, Node, Operands, Tensor
from mlfbuild.native.passes.rewrite import rebuild

# Tables and masks of this size save an operator, and cost less flash than most of its kernels.
_ALWAYS_FOLDED = 1 << 16
"""Results of at most this many bytes are folded even if they are larger than the operands."""

# A file may have thousands of such operators.
_MOST_FOLDED = 1 << 24
"""Bytes of all results of a graph that are folded although they are larger than their operands."""


def fold_constants(graph: Graph) -> Graph:
    """Replace each node whose inputs are all constant by its value, which the operator's numpy reference computes.

    Nodes whose result is much larger than their operands stay.

    The limits are those of this module: a result up to 64 KiB always counts as worth it, until 16 MiB are spent in
    total. Nodes whose result is not larger than their operands are always computed.
    """
    known: dict[str, Tensor] = {}
    kept: list[Node] = []
    # Values that this loop already folded count as constants, so that a chain of nodes folds in one pass.
    left = _MOST_FOLDED
    for node in graph.nodes:
        inputs = Operands(
            (None if name is None else known.get(name, graph.tensor(name)) for name in node.inputs), node.place
        )
        # Checked before the reference runs: a large result would fill the memory of the compiler first.
        if all(tensor.constant for tensor in inputs.present) and _worth_its_flash(graph, node, left):
            values = inputs.map(lambda tensor: tensor.known)
            outputs = graph.outputs_of(node)
            left -= _growth(graph, node)
            results = node.operator.reference(inputs, values, outputs)
            for tensor, value in zip(outputs, results, strict=True):
                known[tensor.name] = replace(tensor, data=value)
        else:
            kept.append(node)
    return rebuild(graph, kept, tuple(known.values()))


def _worth_its_flash(graph: Graph, node: Node, left: int) -> bool:
    # The result of a PAD of a few bytes can have gigabytes, which would fill flash and the compiler's memory.
    results, growth = sum(tensor.size for tensor in graph.outputs_of(node)), _growth(graph, node)
    return growth == 0 or (results <= _ALWAYS_FOLDED and growth <= left)


def _growth(graph: Graph, node: Node) -> int:
    """Return by how many bytes the results of ``node`` are larger than its operands."""
    operands = sum(tensor.size for tensor in graph.inputs_of(node).present)
    return max(0, sum(tensor.size for tensor in graph.outputs_of(node)) - operands)
