"""Print a graph as readable text, for the archive's ``src/`` folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields

from mlfbuild.native.graph import Graph, Node, Operator, Tensor


def graph_text(graph: Graph) -> str:
    """Return one line for each input, state, constant, node and output of ``graph``.

    The archive has it as the text of the program (``Module.source_text``). It is for people: names are quoted as in
    JSON, and attributes that say nothing about the result are left out if they are not set.
    """
    return "\n".join([f"graph {graph.name}", *_lines(graph), ""])


def _lines(graph: Graph) -> Iterator[str]:
    for name in graph.inputs:
        yield f"input {_tensor(graph.tensor(name))}"
    for state in graph.states:
        yield f"state {_tensor(graph.tensor(state.before))}, left as {_name(state.after)}"
    for tensor in graph.constants:
        yield f"constant {_tensor(tensor)}"
    for index, node in enumerate(graph.nodes):
        yield f"{index}: {_node(graph, node)}"
    for name in graph.outputs:
        yield f"output {_name(name)}"


def _node(graph: Graph, node: Node) -> str:
    sources = ", ".join("none" if name is None else _name(name) for name in node.inputs)
    results = ", ".join(_tensor(tensor) for tensor in graph.outputs_of(node))
    return f"{node.operator.name}({sources}{_attributes(node.operator)}) -> {results}"


def _attributes(operator: Operator) -> str:
    """Return all attributes; those without ``repr``, which few networks set, only if they are set."""
    values = [(field, getattr(operator, field.name)) for field in fields(operator)]
    return "".join(f"; {field.name}={_value(value)}" for field, value in values if field.repr or value)


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return f"{len(value)}bytes"
    return str(getattr(value, "name", value)).replace(" ", "")


def _tensor(tensor: Tensor) -> str:
    quantization = tensor.quantization
    text = f"{_name(tensor.name)}: {tensor.dtype.value}{list(tensor.shape)}".replace(", ", ",")
    if quantization is None:
        return text
    if quantization.per_channel:
        return f"{text} ({len(quantization.scales)} scales along dimension {quantization.axis})"
    return f"{text} (scale {quantization.scale!r}, zero point {quantization.zero_point})"


def _name(name: str) -> str:
    # Names come from the file and may have any character; JSON quotes them unambiguously.
    return json.dumps(name)
