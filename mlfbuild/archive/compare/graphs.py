"""Compare graphs as typed values, independent of the JSON text.

Nodes are paired by name, so an additional node is one difference, although all numbers after it change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlfbuild.archive.compare.library_difference import LibraryDifference, by_name, change, distinct
from mlfbuild.library import Module
from mlfbuild.library.graph_json import ExecutorGraph, NodeEntry, parse_graph

_SHOWN = 3
"""Largest number of different properties of a node in the text."""


def graph_differences(left: Module, right: Module) -> Iterator[LibraryDifference]:
    """Yield differences between the graphs of one module; raises ``InputFileError`` if a graph is invalid.

    The order is that of the first graph, then that of the second for what only it has: nodes first, then arguments,
    outputs, and members that TVM does not define. Two modules without graphs have no differences.
    """
    there = left.graph_json is not None, right.graph_json is not None
    if there[0] != there[1]:
        yield LibraryDifference(left.name, "graph", "", *there, f"only in the {'first' if there[0] else 'second'}")
    # Equal text needs no parsing, and an equal but invalid graph is not a difference.
    if not all(there) or left.graph_json == right.graph_json:
        return
    first, second = (parse_graph(bytes(m.graph_json or b""), f"graph of {m.name}") for m in (left, right))
    yield from _node_differences(left.name, _nodes(first), _nodes(second))
    for what, of in (("arguments", _arguments), ("outputs", _outputs)):
        old, new = of(first), of(second)
        if old != new:
            yield LibraryDifference(left.name, "graph", what, old, new, change(", ".join(old), ", ".join(new)))
    for name in ("other_attrs", "others"):
        extra = dict(getattr(first, name)), dict(getattr(second, name))
        for key in sorted(key for key in {*extra[0], *extra[1]} if extra[0].get(key) != extra[1].get(key)):
            values = extra[0].get(key), extra[1].get(key)
            yield LibraryDifference(left.name, "graph", key, *values, "differs")


def _node_differences(
    module: str, left: Mapping[str, Mapping[str, object]], right: Mapping[str, Mapping[str, object]]
) -> Iterator[LibraryDifference]:
    def changed(name: str, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[LibraryDifference]:
        if words := _changes(old, new):
            more = f", and {len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
            yield LibraryDifference(module, "graph", name, old, new, f"{', '.join(words[:_SHOWN])}{more}")

    yield from by_name((module, "graph"), left, right, dict, changed, "node ")
    # Nodes of one side only are already reported, and must not change the order as well.
    old, new = ([name for name in side if name in left and name in right] for side in (left, right))
    if old != new:
        yield LibraryDifference(module, "graph", "", old, new, "the nodes run in another order")


def _changes(left: Mapping[str, object], right: Mapping[str, object]) -> list[str]:
    """Return the different properties of two nodes; a device or scope that is known for only one does not count."""
    keys = [key for key in dict.fromkeys([*left, *right]) if left.get(key) != right.get(key)]
    unknown = [key for key in keys if key in {"devices", "scopes"} and None in (left.get(key), right.get(key))]
    return [f"{key} {change(left.get(key), right.get(key))}" for key in keys if key not in unknown]


def _nodes(graph: ExecutorGraph) -> dict[str, dict[str, object]]:
    """Return the properties of each node by its name, with references to other nodes by name."""
    names = _names(graph)
    nodes: dict[str, dict[str, object]] = {}
    for index, node in enumerate(graph.nodes):
        entries = slice(graph.node_row_ptr[index], graph.node_row_ptr[index + 1])
        nodes[names[index]] = {
            "op": node.op,
            "inputs": _listed(node.inputs, names),
            "shapes": [list(shape) for shape in graph.shape[entries]],
            "types": list(graph.dltype[entries]),
            "storage": list(graph.storage_id[entries]),
            "devices": None if graph.device_index is None else list(graph.device_index[entries]),
            "scopes": None if graph.storage_scope is None else list(graph.storage_scope[entries]),
            "after": [names[other] for other in node.control_deps],
            **dict(node.attrs),
            **dict(node.others),
        }
    return nodes


def _names(graph: ExecutorGraph) -> list[str]:
    # Graphs may repeat the name of a node; with a number both stay in the comparison.
    return list(distinct(node.name for node in graph.nodes))


def _listed(entries: Sequence[NodeEntry], names: Sequence[str]) -> list[str]:
    return [names[entry.node] + (f":{entry.index}" if entry.index else "") for entry in entries]


def _arguments(graph: ExecutorGraph) -> list[str]:
    return [graph.nodes[index].name for index in graph.arg_nodes]


def _outputs(graph: ExecutorGraph) -> list[str]:
    return _listed(graph.heads, _names(graph))
