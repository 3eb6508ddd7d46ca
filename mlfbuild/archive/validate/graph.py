"""Rules for graphs: validity, support by TVM's C runtime, and the functions, inputs and outputs that they use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlfbuild.archive.validate.codes import Finding, finding
from mlfbuild.archive.validate.views import ArchiveView, ModuleView, of_each_module
from mlfbuild.library import LINKED_PARAMETERS, SYSTEM_LIBRARY, TensorInfo
from mlfbuild.library.graph_json import CALL, ExecutorGraph, c_runtime_problems

_BUILT_IN = frozenset({"__nop", "__copy"})


def sound_graphs(view: ModuleView) -> Iterator[Finding]:
    """Find invalid graphs; the reader of archives does not check very large ones."""
    if view.graph_error is not None:
        _, colon, place = view.graph_error.place.partition(": ")
        yield finding("MLF501", view.graph_place + colon + place, view.graph_error.reason)


def c_runtime(view: ModuleView) -> Iterator[Finding]:
    """Find features that TVM's C++ runtime supports but the C runtime does not.

    ``MLF502`` for features of the graph, ``MLF503`` if the first argument is a parameter, and ``MLF504`` if there is
    no function registry, through which the runtime finds all functions.
    """
    if view.graph is None:
        return
    place = view.graph_place
    for problem in c_runtime_problems(view.graph):
        where, _, reason = problem.partition(": ")
        yield finding("MLF502", f"{place}: {where}", reason)
    arguments = view.graph.arguments
    if arguments and arguments[0].name in view.module.params:
        yield finding("MLF503", place, f"arg_nodes begins with the parameter {arguments[0].name}")
    if not view.closed and SYSTEM_LIBRARY not in view.known:
        yield finding("MLF504", view.place("executors"), f"the code of {view.name} has no function registry")


def functions(archive: ArchiveView) -> Iterator[Finding]:
    """Find functions that the graph calls but no file defines, or that the runtime cannot look up.

    ``MLF505`` is about functions that no code defines, ``MLF508`` about those that exist but are in no registry, where
    TVM's C runtime looks them up by name. Nothing is reported for a module with files that could not be read.
    """
    listed = {name for view in archive.modules for names in _registries(view) for name in names}
    for view in archive.modules:
        if view.graph is None or view.closed:
            continue
        called = {node.function for node in view.graph.nodes if node.op == CALL}
        # `__nop` and `__copy` are the executor's own functions.
        for name in sorted(called - _BUILT_IN - view.known):
            yield finding("MLF505", view.graph_place, f"calls {name}, but no file of {view.name} defines it")
        if any(_registries(view)):
            for name in sorted((called & view.known) - _BUILT_IN - listed):
                yield finding("MLF508", view.graph_place, f"calls {name}, which is not in a registry")


def _registries(view: ModuleView) -> Sequence[Sequence[str]]:
    """Return the names in each function registry of the module's C files."""
    return [source.registry.names for source in view.sources if source.registry is not None]


def inputs_and_outputs(view: ModuleView) -> Iterator[Finding]:
    """Compare arguments and outputs of the graph with those of the metadata.

    ``MLF506`` for outputs, ``MLF410`` for an input of another type or size, and ``MLF507`` for an argument that is
    neither an input nor a parameter.
    """
    if view.graph is None:
        return
    yield from _outputs(view, view.graph)
    known = {tensor.name: tensor for tensor in view.module.inputs}
    for argument in view.graph.arguments:
        if argument.name in known:
            yield from _input(view, known[argument.name], argument)
        # TVM 0.8 can link parameters into the code, where the executor finds their values.
        elif known and argument.name not in view.module.params and LINKED_PARAMETERS not in view.known:
            yield finding("MLF507", view.graph_place, f"argument {argument.name} has no value")


def _outputs(view: ModuleView, graph: ExecutorGraph) -> Iterator[Finding]:
    in_metadata = sorted(map(_stored, view.module.outputs))
    # Only types and sizes, sorted: names and order of outputs in the metadata need not be those of the graph.
    in_graph = sorted(map(_stored, graph.outputs))
    if in_metadata and in_metadata != in_graph:
        place = view.place("memory.functions.main[0].outputs")
        yield finding("MLF506", place, f"has {_listed(in_metadata)}, but the graph has {_listed(in_graph)}")


def _stored(tensor: TensorInfo) -> tuple[str, int]:
    """Return type and bytes; bool counts as uint8, which graphs for TVM's C runtime use instead."""
    return "uint8" if tensor.dtype == "bool" else tensor.dtype, tensor.size


def _listed(tensors: list[tuple[str, int]]) -> str:
    return ", ".join(f"{dtype} of {size:,} bytes" for dtype, size in tensors) or "none"


def _input(view: ModuleView, tensor: TensorInfo, argument: TensorInfo) -> Iterator[Finding]:
    if _stored(tensor) != _stored(argument):
        place = view.place(f"memory.functions.main[0].inputs.{tensor.name}")
        shape = list(argument.shape or ())
        message = f"is {tensor.dtype} of {tensor.size:,} bytes, but {argument.dtype}{shape} in the graph"
        yield finding("MLF410", place, message)


RULES = (*of_each_module(sound_graphs, c_runtime, inputs_and_outputs), functions)
