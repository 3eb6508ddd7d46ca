"""Rules of graphs: soundness, what TVM's C runtime takes, and the functions, inputs and outputs that they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlfbuild.archive.validate.codes import finding
from mlfbuild.archive.validate.context import Context, ModuleView
from mlfbuild.archive.validate.types import Finding
from mlfbuild.library import LINKED_PARAMETERS, SYSTEM_LIBRARY, TensorInfo
from mlfbuild.library.graph_json import CALL, ExecutorGraph, c_runtime_problems

_BUILT_IN = frozenset({"__nop", "__copy"})


def sound_graphs(context: Context) -> Iterator[Finding]:
    """Find graphs that cannot be read as graphs."""
    for view in context.modules:
        if view.graph_error:
            yield finding("MLF501", context.graph_place(view), view.graph_error)


def c_runtime(context: Context) -> Iterator[Finding]:
    """Find what TVM's C runtime does not take, and the C++ runtime does."""
    for view in context.modules:
        if view.graph is None:
            continue
        place = context.graph_place(view)
        for problem in c_runtime_problems(view.graph):
            where, _, reason = problem.partition(": ")
            yield finding("MLF502", f"{place}: {where}", reason)
        arguments = view.graph.arguments
        if arguments and arguments[0].name in view.module.params:
            yield finding("MLF503", place, f"arg_nodes begins with the parameter {arguments[0].name}")
        if not view.closed and SYSTEM_LIBRARY not in view.known:
            yield finding("MLF504", view.place("executors"), f"the code of {view.name} has no function registry")


def functions(context: Context) -> Iterator[Finding]:
    """Find functions that the graph calls and nobody defines, or that its runtime cannot find by their names."""
    listed = {name for view in context.modules for names in _registries(view) for name in names}
    for view in context.modules:
        if view.graph is None or view.closed:
            continue
        called = {node.function for node in view.graph.nodes if node.op == CALL}
        for name in sorted(called - _BUILT_IN - view.known):
            yield finding("MLF505", context.graph_place(view), f"calls {name}, which no file of {view.name} defines")
        if any(_registries(view)):
            for name in sorted((called & view.known) - _BUILT_IN - listed):
                yield finding("MLF508", context.graph_place(view), f"calls {name}, which no registry lists")


def _registries(view: ModuleView) -> Sequence[Sequence[str]]:
    """Return the names in each function registry of the module's C files."""
    return [source.registry.names for source in view.sources if source.registry is not None]


def inputs_and_outputs(context: Context) -> Iterator[Finding]:
    """Compare arguments and outputs of the graph with those of the metadata."""
    for view in context.modules:
        if view.graph is None:
            continue
        yield from _outputs(view, view.graph)
        known = {tensor.name: tensor for tensor in view.module.inputs}
        for argument in view.graph.arguments:
            if argument.name in known:
                yield from _input(view, known[argument.name], argument)
            elif known and argument.name not in view.module.params and LINKED_PARAMETERS not in view.known:
                yield finding("MLF507", context.graph_place(view), f"argument {argument.name} has no value")


def _outputs(view: ModuleView, graph: ExecutorGraph) -> Iterator[Finding]:
    in_metadata = sorted(map(_stored, view.module.outputs))
    in_graph = sorted(map(_stored, graph.outputs))
    if in_metadata and in_metadata != in_graph:
        place = view.place("memory.functions.main[0].outputs")
        yield finding("MLF506", place, f"has {_listed(in_metadata)}, the graph {_listed(in_graph)}")


def _stored(tensor: TensorInfo) -> tuple[str, int]:
    """Return type and bytes; truth values are bytes, which a graph may say as TVM's C runtime counts no others."""
    return "uint8" if tensor.dtype == "bool" else tensor.dtype, tensor.size


def _listed(tensors: list[tuple[str, int]]) -> str:
    return ", ".join(f"{dtype} of {size:,} bytes" for dtype, size in tensors) or "none"


def _input(view: ModuleView, tensor: TensorInfo, argument: TensorInfo) -> Iterator[Finding]:
    if _stored(tensor) != _stored(argument):
        place = view.place(f"memory.functions.main[0].inputs.{tensor.name}")
        shape = list(argument.shape or ())
        message = f"is {tensor.dtype} of {tensor.size:,} bytes, in the graph {argument.dtype}{shape}"
        yield finding("MLF410", place, message)


RULES = (sound_graphs, c_runtime, functions, inputs_and_outputs)
