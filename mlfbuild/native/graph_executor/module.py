"""Compile a network to a module for the graph executor: run the steps in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library import (
    CPU_DEVICE,
    TVM_RUNTIME,
    CodegenFile,
    CompileRequest,
    MainMemory,
    Module,
    ModuleTarget,
    OperatorFunction,
    StorageEntry,
    TracedTensor,
)
from mlfbuild.library.graph_json import CALL, ExecutorGraph, graph_text as executor_graph_text, storage_sizes
from mlfbuild.native.c_calling_form import form_of
from mlfbuild.native.graph import ConstantBudget, Graph
from mlfbuild.native.graph_executor.nodes import GraphProgram, make_nodes
from mlfbuild.native.graph_executor.source import print_functions, print_registry
from mlfbuild.native.graph_executor.storage import StoragePlan, plan_storage
from mlfbuild.native.lowering import KernelCall, check_constants, lower, lower_all, settled
from mlfbuild.native.memory import better_order
from mlfbuild.native.network import graph_network, memory_notes, removed_from_layers
from mlfbuild.native.passes import fuse
from mlfbuild.native.printing import (
    Interface,
    codegen_files,
    facts_path,
    graph_text,
    print_facts,
    traced_tensor,
)
from mlfbuild.native.settings import MEMORY, CodegenSettings


def graph_module(
    graph: Graph,
    whole: Graph,
    interface: Interface,
    settings: CodegenSettings,
    request: CompileRequest,
    target: str,
    model_id: str,
    budget: ConstantBudget | None = None,
) -> Module:
    """Return the module of ``graph``, whose passes have run, read from a file with the SHA-256 ``model_id``.

    ``whole`` is the network with its dead channels, ``target`` is TVM's target string, ``budget`` limits the constants.
    Raises ``UnsupportedModelError`` if the network keeps a state, or if an operator cannot be lowered.
    """
    if graph.states:
        raise UnsupportedModelError(
            "graph-executor-without-state",
            place=f"{request.name}: {graph.states[0].before!r}",
            reason="is a state that is kept between runs, which TVM's graph executor does not support",
            hint="use executor aot",
        )
    smallest, calls, plan = _smallest(graph, whole, settings)
    check_constants(smallest, calls, budget)
    usual = None
    if settings.memory == MEMORY[0]:
        usual = _smallest(graph, whole, replace(settings, memory=MEMORY[1]))[2].size
    calls = settled(smallest, calls, replaceable=False)
    program = make_nodes(request.name, smallest, calls, plan, interface)
    return Module(
        name=request.name,
        executor="graph",
        targets=(ModuleTarget(target),),
        main=(_main_memory(program),),
        inputs=tuple(port.info for port in interface.inputs),
        outputs=tuple(port.info for port in interface.outputs),
        operator_functions=tuple(
            OperatorFunction(packed.name, ((CPU_DEVICE, packed.scratch),)) for packed in program.functions
        ),
        codegen=_codegen(program, request, model_id),
        params=program.params,
        graph_json=executor_graph_text(program.executor_graph).encode(),
        storage=tuple(_storage(program.executor_graph)),
        source_text=graph_text(graph).encode(),
        model_id=model_id,
        trace=tuple(_trace(program)),
        network=graph_network(program, calls, removed_from_layers(whole, graph)),
        hook=bool(request.options.get("hook", False)),
        notes=memory_notes(plan.size, usual),
        external_dependencies=(TVM_RUNTIME,),
    )


def storage_need(graph: Graph, settings: CodegenSettings) -> int:
    """Return the bytes of the storages and the scratch memory of ``graph``, whose passes have run."""
    return _smallest(graph, graph, settings)[2].size


def _smallest(graph: Graph, whole: Graph, settings: CodegenSettings) -> tuple[Graph, Sequence[KernelCall], StoragePlan]:
    """Lower ``graph``; operators run row by row, or in another order, if a run needs less memory that way."""
    calls = lower_all(graph, settings)
    ways: list[tuple[Graph, Sequence[KernelCall]]] = [(graph, calls)]
    fused = fuse(graph, calls, settings, lambda part, node: lower(part, node, settings), whole)
    if fused[0] is not graph:
        ways.append(fused)
    # An order in which fewer bytes are in use does not always need smaller storages, so that both are planned.
    orders = [each for way in ways for each in (way, better_order(*way)) if each is not None]
    # Of equal ones the first: chains must gain something, as for the AOT executor.
    return min(((*each, plan_storage(*each)) for each in orders), key=lambda each: each[2].size)


def _main_memory(program: GraphProgram) -> MainMemory:
    constants = sum(values.nbytes for values in program.params.values())
    constants += sum(constant.size for constant in program.constants)
    return MainMemory(workspace_size=program.storage.size, constants_size=constants, io_size=program.interface.size)


def _storage(graph: ExecutorGraph) -> list[StorageEntry]:
    names = {graph.storage_id[graph.node_row_ptr[node]]: graph.nodes[node].name for node in graph.arg_nodes}
    return [StorageEntry(number, size, names.get(number)) for number, size in storage_sizes(graph).items()]


def _trace(program: GraphProgram) -> Iterator[TracedTensor]:
    """Yield the tensors that calls write, with their names in the model, which TVM's readers may find too long."""
    calls = (node for node in program.executor_graph.nodes if node.op == CALL)
    for index, call in zip(program.storage.calls, calls, strict=True):
        node = program.graph.nodes[index]
        for tensor in program.graph.outputs_of(node):
            yield traced_tensor(tensor, node, call.function)


def _codegen(program: GraphProgram, request: CompileRequest, model_id: str) -> tuple[CodegenFile, ...]:
    source, single = request.source.name, form_of(request).single_file
    registry = print_registry(program, source, model_id)
    functions = print_functions(program, source, model_id, request.placement, request.cpu, single=single)
    facts = print_facts(program.name, program.interface, source, "graph")
    header = CodegenFile(facts_path(program.name), facts.encode())
    return codegen_files(program.name, [[registry], [functions]], header, program.headers, single=single)
