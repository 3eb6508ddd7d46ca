"""Remove nodes whose results are not used."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.passes.rewrite import rebuild


def remove_dead_nodes(graph: Graph) -> Graph:
    """Remove nodes from which no path leads to an output of the graph.

    The order of the others does not change. Inputs and states without a reader stay in the interface (``rebuild``).
    """
    # From the outputs back: with nodes in order of execution, one pass finds everything that is reachable.
    needed = set(graph.results)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            kept.append(node)
            needed.update(name for name in node.inputs if name is not None)
    return rebuild(graph, kept[::-1])
