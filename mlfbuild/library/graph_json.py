"""The graph executor's JSON: what a build needs to know of it."""

from __future__ import annotations

from mlfbuild.library.fields import Fields, parse_json


def graph_arguments(data: bytes, where: str) -> list[str]:
    """Return the names of the graph's arguments, inputs and parameters, in the order the executor binds them.

    ``where`` names the file in messages. Raises ``InputFileError`` where ``data`` is not a graph.
    """
    graph = Fields(parse_json(data, where), where)
    nodes = graph.objects("nodes")
    indices = graph.integers("arg_nodes")
    if any(index >= len(nodes) for index in indices):
        raise graph.error("arg_nodes", "names a node that does not exist")
    return [nodes[index].text("name") for index in indices]
