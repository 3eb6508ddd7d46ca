"""The operators of a module's program, each with the C functions that compute it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlfbuild.archive.program.functions import CodeFunction
from mlfbuild.archive.program.relay_calls import functions_of_calls, relay_calls
from mlfbuild.c_analysis import MAX_TEXT
from mlfbuild.library import Module, TensorInfo, text_of
from mlfbuild.library.graph_json import CALL, ExecutorGraph, NodeEntry, parse_graph

RELAY: str = "relay"
TIR: str = "tir"
GRAPH: str = "graph"
PLAN: str = "plan"


@dataclass(frozen=True)
class ProgramOperator:
    """An operator of a graph or a plan, or a call in the text of the program."""

    name: str
    functions: tuple[CodeFunction, ...]
    """The function that computes it. For a call in Relay text, all whose names contain its name."""
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    line: int | None = None
    """The line of the call in the text."""


def program_operators(module: Module, part: str, functions: Mapping[str, CodeFunction]) -> tuple[ProgramOperator, ...]:
    """Return the operators of one part of the program, in its order; ``functions`` are those of the module's code.

    Raises ``InputFileError`` if the graph is not valid. A text larger than ``MAX_TEXT`` has no operators.
    """
    if part == GRAPH:
        return tuple(_of_graph(module, functions))
    if part == TIR:
        return tuple(_of_tir(module, functions))
    if module.network is not None:
        return tuple(_of_network(module, functions))
    return tuple(_of_text(module, functions))


def _known(name: str, functions: Mapping[str, CodeFunction]) -> tuple[CodeFunction, ...]:
    return (functions.get(name, CodeFunction(name, "", None)),) if name else ()


def _of_graph(module: Module, functions: Mapping[str, CodeFunction]) -> Iterator[ProgramOperator]:
    graph = parse_graph(bytes(module.graph_json or b""), f"graph of {module.name}")
    for index, node in enumerate(graph.nodes):
        if node.op == CALL:
            count = graph.node_row_ptr[index + 1] - graph.node_row_ptr[index]
            yield ProgramOperator(
                node.name,
                _known(node.function, functions),
                tuple(_tensor(graph, entry) for entry in node.inputs),
                tuple(_tensor(graph, NodeEntry(index, output)) for output in range(count)),
            )


def _tensor(graph: ExecutorGraph, output: NodeEntry) -> TensorInfo:
    name = graph.nodes[output.node].name
    return graph.tensor(graph.entry(output), f"{name}:{output.index}" if output.index else name)


def _of_tir(module: Module, functions: Mapping[str, CodeFunction]) -> Iterator[ProgramOperator]:
    buffers: defaultdict[str, list[TensorInfo]] = defaultdict(list)
    for each in module.buffers:
        name = each.input_binding or f"argument {len(buffers[each.function])}"
        buffers[each.function].append(TensorInfo(name, each.dtype, each.size, each.shape))
    for function in module.operator_functions:
        yield ProgramOperator(function.name, _known(function.name, functions), tuple(buffers[function.name]))


def _of_network(module: Module, functions: Mapping[str, CodeFunction]) -> Iterator[ProgramOperator]:
    assert module.network is not None
    tensors = [TensorInfo(each.name, each.dtype, each.size, each.shape) for each in module.network.tensors]
    for operator in module.network.operators:
        yield ProgramOperator(
            f"{operator.name} ({operator.operator})",
            _known(operator.function, functions),
            tuple(tensors[index] for index in operator.inputs if index < len(tensors)),
            tuple(tensors[index] for index in operator.outputs if index < len(tensors)),
        )


def _of_text(module: Module, functions: Mapping[str, CodeFunction]) -> Iterator[ProgramOperator]:
    if len(module.source_text) > MAX_TEXT:
        return
    calls = tuple(relay_calls(text_of(module.source_text)))
    found = functions_of_calls(calls, functions)
    places = {names: tuple(functions[name] for name in names) for names in set(found.values())}
    for call in calls:
        yield ProgramOperator(call.name, places[found[call]], line=call.line)
