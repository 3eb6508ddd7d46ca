"""Intermediate tensors of a module on this machine.

A graph is executed by a static executor that reports each call (``MLF_TRACE`` of ``mlf_executor.h``). A module of the
native compiler has a run function with a hook if it was compiled with the option ``trace``. In both cases a tensor is
copied as soon as it is written, because another tensor may reuse its memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mlfbuild.archive.compare import distinct
from mlfbuild.library import FULL_MODEL, Module, TracedTensor, is_supported
from mlfbuild.library.graph_json import CALL, ExecutorGraph, GraphNode, parse_graph

# TVM's name of nodes that only rename their input.
_NO_CALL = "__nop"


def is_graph(module: Module) -> bool:
    """Return whether ``module`` is a network for the graph executor."""
    return module.style == FULL_MODEL and module.executor == "graph" and module.graph_json is not None


def traced_tensors(module: Module) -> tuple[TracedTensor, ...]:
    """Return the intermediate tensors that a run of ``module`` exposes, in order; empty if there are none.

    Those of a graph are the outputs of each call, with the name of its node, and ``:1`` and so on from the second one.
    The second tensor with a name is ``<name>#2``. Raises ``InputFileError`` if the graph is damaged.
    """
    found = _called_as(_outputs_of_calls(_graph(module)), module.trace) if is_graph(module) else module.trace
    names = distinct(traced.tensor.name for traced in found)
    return tuple(
        replace(traced, tensor=replace(traced.tensor, name=name)) for traced, name in zip(found, names, strict=True)
    )


def _called_as(found: Sequence[TracedTensor], known: Sequence[TracedTensor]) -> tuple[TracedTensor, ...]:
    """Return ``known``, the tensors in the metadata with names of the model, if their sizes match; else ``found``."""
    sizes = [[(each.tensor.size, each.function) for each in side] for side in (found, known)]
    return tuple(known) if sizes[0] == sizes[1] else tuple(found)


def _outputs_of_calls(graph: ExecutorGraph) -> tuple[TracedTensor, ...]:
    return tuple(
        TracedTensor(graph.tensor(entry, f"{node.name}:{at}" if at else node.name), "", node.function)
        for index, node in _calls(graph)
        for at, entry in enumerate(_outputs(graph, index))
        if is_supported(graph.dltype[entry])
    )


def _graph(module: Module) -> ExecutorGraph:
    return parse_graph(bytes(module.graph_json or b""), f"{module.name}.graph")


def _calls(graph: ExecutorGraph) -> Iterator[tuple[int, GraphNode]]:
    """Yield index and node of each call that the static executor makes for a node, in its order."""
    for index, node in enumerate(graph.nodes):
        if node.op == CALL and node.function != _NO_CALL:
            yield index, node


def _outputs(graph: ExecutorGraph, index: int) -> range:
    """Return the entries that the node at ``index`` writes."""
    return range(graph.node_row_ptr[index], graph.node_row_ptr[index + 1])


def traced_copies(module: Module) -> Iterator[tuple[int, int, int]]:
    """Yield what ``mlf_called`` of the C code has to copy for each tensor of the graph ``module`` that is traced.

    That is the number of the call that writes it, its argument of the call, and its size in bytes.
    """
    graph = _graph(module)
    for call, (index, node) in enumerate(_calls(graph)):
        for argument, entry in enumerate(_outputs(graph, index), start=len(node.inputs)):
            if is_supported(graph.dltype[entry]):
                yield call, argument, graph.tensor(entry, "").size
