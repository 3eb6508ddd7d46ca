"""Intermediate tensors of a module on this machine, and the C code that copies them to Python.

A graph is executed by a static executor that reports each call (``MLF_TRACE`` of ``mlf_executor.h``). A module of the
native compiler has a run function with a hook if it was compiled with the option ``trace``. In both cases a tensor is
copied as soon as it is written, because another tensor may reuse its memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mlfbuild.archive.compare import distinct
from mlfbuild.library import (
    FULL_MODEL,
    WORKSPACE_POOL,
    Module,
    TracedTensor,
    is_supported,
    macro_prefix,
    sanitize_name,
    struct_prefix,
)
from mlfbuild.library.graph_json import CALL, ExecutorGraph, GraphNode, parse_graph
from mlfbuild.verify.host.shim import print_copied_outputs, print_mapped, print_structs

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


# Graphs --------------------------------------------------------------------------------------------------------------


def print_graph_trace(module: Module) -> Iterator[str]:
    """Yield the C of ``mlf_host_trace`` for the graph ``module``, which follows that of ``mlf_host_run``.

    ``mlf_host_trace(inputs, outputs, traced)`` runs the graph and copies each tensor of ``traced_tensors``, in its
    order, to the pointer in ``traced``.
    """
    yield f"#define MLF_MODULE {sanitize_name(module.name)}"
    # The header sizes an array of arguments with it, which only the file with the executor uses.
    yield "#define MLF_MOST_ARGUMENTS 1"
    if module.hook:
        yield "#define MLF_HOOKED"
    yield '#include "mlf_executor.h"'
    yield ""
    yield "static void **handed_out;"
    yield ""
    yield "/* For each copy: the number of the call that writes the tensor, the argument, and the size in bytes. */"
    yield "static const struct { uint32_t call, argument; size_t size; } copies[] = {"
    yield from (f"    {{{call}, {argument}, {size}}}," for call, argument, size in _copies(_graph(module)))
    # An end mark: the loop also compares copies[made] after the last copy, and an empty array would not be C.
    yield "    {UINT32_MAX, 0, 0}"
    yield "};"
    yield "static uint32_t made;"
    yield ""
    yield "void mlf_called(uint32_t call, const mlf_argument *own, const struct mlf_tensor *tensors,"
    yield "                const struct mlf_run *run)"
    yield "{"
    yield "    for (; handed_out != NULL && copies[made].call == call; made++) {"
    yield "        memcpy(handed_out[made], mlf_place(&tensors[own[copies[made].argument]], run), copies[made].size);"
    yield "    }"
    yield "}"
    yield ""
    yield "int32_t mlf_host_trace(void **inputs, void **outputs, void **traced)"
    yield "{"
    yield "    int32_t status;"
    yield "    handed_out = traced;"
    yield "    made = 0;"
    yield "    status = mlf_host_run(inputs, outputs);"
    yield "    handed_out = NULL;"
    yield "    return status;"
    yield "}"


def _copies(graph: ExecutorGraph) -> Iterator[tuple[int, int, int]]:
    """Yield (call, argument, bytes) of each traced tensor."""
    for call, (index, node) in enumerate(_calls(graph)):
        for argument, entry in enumerate(_outputs(graph, index), start=len(node.inputs)):
            if is_supported(graph.dltype[entry]):
                yield call, argument, graph.tensor(entry, "").size


# Modules of the native compiler --------------------------------------------------------------------------------------


def print_traced_shim(module: Module) -> Iterator[str]:
    """Yield the C file between ctypes and a module with a traced run function.

    All of its functions use ``mlf_<module>_run_traced`` with one workspace and one state, so that traced and other runs
    may alternate.
    """
    name, prefix, macros = sanitize_name(module.name), struct_prefix(module.name), macro_prefix(module.name)
    # The traced run function takes the state from its caller, which is the file that is printed here.
    kept = ", kept" if module.state_size else ""
    yield f'#include "{prefix}.h"'
    yield "#include <stddef.h>"
    yield "#include <string.h>"
    yield ""
    # One byte more, because C has no arrays of size 0 and a network may need no workspace.
    yield f"static uint8_t workspace[{macros}_WORKSPACE_SIZE + 1] __attribute__((aligned(64)));"
    if module.state_size:
        yield f"static uint8_t kept[{module.state_size}] __attribute__((aligned(64)));"
        yield "static int begun;"
    yield from _sizes([traced.tensor.size for traced in module.trace])
    yield ""
    yield "static void hand_out(void *context, uint32_t tensor, const void *data)"
    yield "{"
    # The copy must not write beyond the arrays that Python passed, whatever number the code reports.
    yield f"    if (tensor < {len(module.trace)}) {{"
    yield "        memcpy(((void **)context)[tensor], data, sizes[tensor]);"
    yield "    }"
    yield "}"
    yield ""
    yield "int32_t mlf_host_trace(void **inputs, void **outputs, void **traced)"
    yield "{"
    yield "    int32_t status;"
    if module.workspace_io:
        yield f"    struct {prefix}_workspace_pools pools = {{.{WORKSPACE_POOL} = workspace}};"
    yield from (print_mapped if module.workspace_io else print_structs)(module)
    if module.state_size:
        yield "    if (!begun) {"
        yield f"        begun = mlf_{name}_reset(kept) == 0;"
        yield "    }"
    pointers = "" if module.workspace_io else "&its_inputs, &its_outputs, "
    yield f"    status = mlf_{name}_run_traced({pointers}workspace{kept},"
    yield "        traced != NULL ? hand_out : NULL, traced);"
    yield from print_copied_outputs(module) if module.workspace_io else ()
    yield "    return status;"
    yield "}"
    yield ""
    yield "int32_t mlf_host_run(void **inputs, void **outputs)"
    yield "{"
    yield "    return mlf_host_trace(inputs, outputs, NULL);"
    yield "}"
    yield ""
    yield "int32_t mlf_host_reset(void)"
    yield "{"
    yield f"    return {f'mlf_{name}_reset(kept)' if module.state_size else '0'};"
    yield "}"


def _sizes(sizes: Sequence[int]) -> Iterator[str]:
    yield "static const size_t sizes[] = {"
    yield from (f"    {size}," for size in sizes)
    yield "};"
