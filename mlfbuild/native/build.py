"""Compile a request to a library: run the steps in order.

    SourceFiles.read -> parse_files -> run_passes -> remove_dead_channels -> _program -> print -> Library
    _program: plan_network -> use_free_memory -> link_calls

Rules:

1. Files are read once, and hashed and parsed from the same bytes, so that ``model_id`` is that of the compiled network.
2. Checks that need no lowering come first: placement, sizes of tensors, the interface.
3. ``whole`` is the network with its dead channels. Reports state what was removed, and ``fuse`` limits the cost of
   chains relative to it: a network that became smaller must not get a larger arena for that reason.
4. All constants of the code are counted against the budget of the file before they are printed.
5. Nothing depends on the time or the machine: the same request gives the same bytes.

``planned`` decides which operators run row by row. With ``executor: graph``,
``graph_executor`` does the steps after the passes instead, with storage ids, and also compares two plans.

This module checks no options (``compiler.py`` does) and writes no archive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mlfbuild.core import InputFileError, ToolNotFoundError, UsageError, better_error
from mlfbuild.library import (
    CPU_DEVICE,
    TVM_RUNTIME,
    CodegenFile,
    CompileRequest,
    Library,
    MainMemory,
    Module,
    ModuleTarget,
    Network,
    OperatorFunction,
    Pool,
    blob_path,
)
from mlfbuild.library.cgen import aligned
from mlfbuild.library.keys import CONSTANT_CLASSES
from mlfbuild.native import graph_executor
from mlfbuild.native.c_calling_form import CodeForm, form_of
from mlfbuild.native.frontends import AbsentInputs, Choices, NetworkFiles, SourceFiles, parse_files
from mlfbuild.native.graph import ConstantBudget, Graph
from mlfbuild.native.graph.ops import TreeEnsemble
from mlfbuild.native.lowering import KernelCall, check_constants, lower_all, settled
from mlfbuild.native.memory import WeightPlan, plan_memory, plan_weights, use_free_memory, weight_uses, with_curve
from mlfbuild.native.network import compiled_network, macs_of, memory_notes, notes_of_memories, removed_from_layers
from mlfbuild.native.passes import remove_dead_channels, rounded_products, run_passes, streamed
from mlfbuild.native.planned import placed_in, plan_network, without_copies
from mlfbuild.native.printing import (
    Interface,
    LinkedModel,
    class_of,
    codegen_files,
    facts_path,
    graph_text,
    header_path,
    interface_of,
    link_calls,
    notes_of_weights,
    print_entry,
    print_facts,
    print_header,
    print_source,
    print_tvm_metadata,
    traced_tensors,
)
from mlfbuild.native.request_checks import check_request, check_sizes, check_stateless
from mlfbuild.native.settings import (
    DEFAULT_MEMORY,
    TFLM,
    TREE_ROOM,
    TREES,
    CodegenSettings,
    most_constants,
    size_of,
    tflm_of,
)
from mlfbuild.targets import Cpu

_SLACK = 16
"""The part of an arena that a need has in addition."""


def compile_model(request: CompileRequest) -> Library:
    """Read and compile the model file of ``request``; raises as ``Compiler.compile``.

    The result has one module, with C code for the CPU of ``request``. The same file, options and version of mlfbuild
    give the same bytes on every machine.
    """
    files = read_files(request)
    return compile_graph(graph_of(files, request), request, files.identity, budget_of(request, files.size))


def read_network(request: CompileRequest) -> tuple[Graph, str]:
    """Return the network, with the numbers of the option ``tflm``, and the identity of its files.

    Raises the errors of ``read_model``.
    """
    files = read_files(request)
    return graph_of(files, request), files.identity


def arena_need(request: CompileRequest) -> int:
    """Return the bytes of a single memory in which the network of ``request`` certainly fits, with its state.

    It hardly depends on the values of weights: dead channels count, although compiling removes them. Raises the errors
    of ``read_network``, and as lowering.
    """
    form = form_of(request)
    graph = run_passes(read_network(request)[0], replaceable=form.replaceable)
    settings = CodegenSettings(request.cpu, arena_io=form.arena_io, replaceable=form.replaceable)
    if request.executor == "graph":
        needed = graph_executor.storage_need(graph, settings)
        return aligned(needed + needed // _SLACK)
    plan = plan_memory(graph, lower_all(graph, settings), arena_io=form.arena_io)
    # Other calls, such as those without dead channels, are sometimes packed a little worse.
    needed = plan.arena_size + plan.arena_size // _SLACK
    return aligned(needed) + plan.state_size


def read_files(request: CompileRequest) -> NetworkFiles:
    """Return the files of the model, read once, so that the hash is that of the compiled bytes."""
    try:
        return SourceFiles(request.source).read()
    except (InputFileError, ToolNotFoundError) as error:
        raise better_error(error, request.source) from None


def graph_of(
    files: NetworkFiles, request: CompileRequest, accelerator: str = "", absent: AbsentInputs | None = None
) -> Graph:
    """Return the network in ``files``; only views in the graph keep their bytes in memory.

    ``accelerator`` is the NPU for which Vela compiled the file, ``absent`` has the inputs that it left out. Raises as
    ``read_network``.
    """
    choices = replace(Choices.of(request.options), accelerator=accelerator, absent=absent or {})
    try:
        graph = parse_files(files, request.name, budget_of(request, files.size), choices)
    except (InputFileError, ToolNotFoundError) as error:
        raise better_error(error, request.source) from None
    # An option that has no effect is refused, because the user would rely on it.
    if graph.litert and "tflm" in request.options:
        raise UsageError(
            "tflm-of-litert",
            place=f"{request.name}: options.tflm",
            reason="selects numbers of TensorFlow Lite Micro, which does not run this network",
            hint="remove it",
        )
    if tflm_of(request, graph) == TFLM[0]:
        graph = rounded_products(graph).with_notes(graph.notes)
    if request.options.get("stream"):
        graph = streamed(graph)
    return graph


def budget_of(request: CompileRequest, size: int) -> ConstantBudget:
    """Return the limit of what is made of a file of ``size`` bytes, once in reading and once in compiling it."""
    return ConstantBudget.of_file(size, most_constants(request.options))


def compile_graph(
    graph: Graph, request: CompileRequest, model_id: str, budget: ConstantBudget | None = None
) -> Library:
    """Compile ``graph``, read from a file with the SHA-256 ``model_id``, to a library of one module.

    ``budget`` limits the constants in the code, which are unlimited if it is ``None``.
    Raises ``UnsupportedModelError`` if the compiler does not support the model, ``UsageError`` for a bad placement or
    interface.
    """
    check_request(request)
    # Before lowering, in which sizes become int32 literals.
    check_sizes(graph)
    interface = interface_of(graph, request.interface)
    options = request.options
    form, settings = form_of(request), _settings(request, graph)
    whole = run_passes(graph, replaceable=form.replaceable)
    # A traced network is compared with another runtime, tensor by tensor, so that all channels must be there. And
    # which ones are dead depends on values that may be replaced.
    keep = options.get("dead-channels") == "keep" or settings.trace or settings.replaceable
    optimised = whole if keep else remove_dead_channels(whole)
    if request.executor == "graph":
        target = _target(request.cpu)
        module = graph_executor.graph_module(optimised, whole, interface, settings, request, target, model_id, budget)
        notes = (*optimised.notes, *module.notes)
        return Library((replace(module, notes=notes, tflm=tflm_of(request, graph)),))
    if form.packed:
        check_stateless(graph, request.name)
    hook = bool(options.get("hook", False))
    run = optimised
    if request.weights is not None:
        from mlfbuild.native.passes import split_layers  # few models need it

        run = split_layers(optimised, request.weights.stream)
    program, calls, usual = _program(request, run, whole, settings, interface, budget, hook=hook, form=form)
    network = compiled_network(program, calls, removed_from_layers(whole, optimised))
    remarks = [*optimised.notes, *_notes(program, usual, network)]
    if form.replaceable:
        remarks.append(_cost_of_blob(request, whole, settings, interface, program))
    module = Module(
        name=request.name,
        executor="aot",
        targets=(ModuleTarget(_target(request.cpu)),),
        main=(MainMemory(program.plan.arena_size, program.constants_size, interface.size),),
        inputs=tuple(port.info for port in interface.inputs),
        outputs=tuple(port.info for port in interface.outputs),
        interface="packed" if form.packed else "c",
        pools=_pools(program),
        workspace_io=form.arena_io,
        operator_functions=tuple(OperatorFunction(function.name, ((CPU_DEVICE, 0),)) for function in program.functions),
        codegen=_codegen(program, replace(request, placement=placed_in(request.placement, program.plan)), model_id),
        source_text=graph_text(optimised).encode(),
        model_id=model_id,
        state_size=program.plan.state_size,
        workspace_bound=program.plan.lower_bound,
        trace=traced_tensors(program),
        network=network,
        hook=hook,
        tflm=tflm_of(request, graph),
        notes=tuple(remarks),
        external_dependencies=(TVM_RUNTIME,) if form.packed else (),
    )
    return Library((module,))


def _notes(program: LinkedModel, usual: int | None, network: Network) -> Iterator[str]:
    """Yield notes about the memory plan; parameters are as for ``memory_notes``."""
    yield from memory_notes(program.plan.arena_size, usual, network)
    yield from notes_of_memories(program.plan)
    yield from notes_of_weights(program)


def _pools(program: LinkedModel) -> tuple[Pool, ...]:
    """Return the memory pools that the caller passes, sorted by name."""
    pools = (Pool(each.pool, "workspace", each.size, external=True) for each in program.workspaces)
    return tuple(sorted(pools, key=lambda pool: pool.name)) if program.form.arena_io else ()


def _settings(request: CompileRequest, graph: Graph) -> CodegenSettings:
    options, form = request.options, form_of(request)
    memory, trace = str(options.get("memory", DEFAULT_MEMORY)), bool(options.get("trace", False))
    _check_trees(graph, request)
    trees, room = str(options.get("trees", TREES[0])), size_of(options, TREE_ROOM)
    return CodegenSettings(request.cpu, memory, trace, trees, form.arena_io, form.replaceable, room)


def _cost_of_blob(
    request: CompileRequest, whole: Graph, settings: CodegenSettings, interface: Interface, program: LinkedModel
) -> str:
    """Return a note with what replaceable parameters cost: ``program`` beside the same network with linked ones."""
    keep = request.options.get("dead-channels") == "keep"
    smaller = whole if keep else remove_dead_channels(whole)
    settings = replace(settings, replaceable=False)
    linked = _program(request, smaller, whole, settings, interface, None, hook=False, form=CodeForm())[0]
    macs = [sum(macs_of(graph, node) for node in graph.nodes) for graph in (whole, smaller)]
    more = "" if macs[0] == macs[1] else f", and {macs[0]:,} products instead of {macs[1]:,}: dead channels stay"
    return (
        f"parameters: replaceable takes {program.constants_size:,} bytes of constants"
        f" instead of {linked.constants_size:,}{more}"
    )


def _check_trees(graph: Graph, request: CompileRequest) -> None:
    """Raise ``UsageError`` if an option about trees is set for a network without trees."""
    given = next((key for key in ("trees", TREE_ROOM) if key in request.options), None)
    if given is not None and not any(isinstance(node.operator, TreeEnsemble) for node in graph.nodes):
        raise UsageError(
            "trees-without-trees",
            place=f"{request.name}: options.{given}",
            reason="is an option of decision trees, and the model has none",
            hint="remove it",
        )


def _program(
    request: CompileRequest,
    graph: Graph,
    whole: Graph,
    settings: CodegenSettings,
    interface: Interface,
    budget: ConstantBudget | None,
    *,
    hook: bool,
    form: CodeForm,
) -> tuple[LinkedModel, Sequence[KernelCall], int | None]:
    """Lower and link ``graph``; operators run row by row if this makes the arena smaller at an acceptable cost.

    ``whole`` is the network with its dead channels. The third result is the arena in bytes that the default of the
    option ``memory`` would need, or ``None`` unless the option is ``smallest``.
    """
    chosen, usual = plan_network(graph, whole, settings, request.memories)
    graph, calls = chosen.graph, list(chosen.calls)
    plan = with_curve(graph, calls, chosen.plan, request.memories, arena_io=settings.arena_io)
    check_constants(graph, calls, budget)
    if not settings.is_dual_issue:  # its data cache holds weights that are read again: copies cost more than they save
        calls, plan = use_free_memory(calls, plan)
    linked = settled(graph, without_copies(graph, calls, plan), replaceable=settings.replaceable)
    cpu = settings.cpu if settings.replaceable else None
    program = link_calls(
        request.name, graph, linked, plan, interface, trace=settings.trace, hook=hook, form=form, replaceable=cpu,
        weights=_weights(request, graph, linked, chosen.calls),
    )  # fmt: skip
    return program, calls, usual


def _weights(
    request: CompileRequest, graph: Graph, linked: Sequence[KernelCall], lowered: Sequence[KernelCall]
) -> WeightPlan | None:
    """Return the places of weights that are copied from flash, if ``request`` has memory for them."""
    if request.weights is None:
        return None
    memory = next(each for each in request.memories if each.name == request.weights.memory)
    uses = weight_uses(graph, linked, lowered, lambda constant: class_of(constant) == CONSTANT_CLASSES[0])
    return plan_weights(uses, request.weights, memory)


def _target(cpu: Cpu) -> str:
    """Return TVM's target string for C code on ``cpu``."""
    if cpu.is_arm:
        return f"c -keys=arm_cpu,cpu -mcpu={cpu.name}"
    return "c -keys=cpu" if cpu.name == "host" else f"c -keys=cpu -march={cpu.architecture}"


def _codegen(program: LinkedModel, request: CompileRequest, model_id: str) -> tuple[CodegenFile, ...]:
    name, source, single = program.name, request.source.name, program.form.single_file
    code = print_source(program, source, model_id, request.placement, request.cpu, request.npu)
    if program.form.packed:
        facts = print_facts(name, program.interface, source, "packed")
        around = [[print_entry(program, source, model_id)], [print_tvm_metadata(program, source, model_id)]]
        header = CodegenFile(facts_path(name), facts.encode())
        return codegen_files(name, [*around, code], header, program.headers, single=single)
    header = CodegenFile(header_path(name), print_header(program, source, request.placement).encode())
    if program.blob is None:
        return codegen_files(name, [code], header, program.headers, single=single)
    from mlfbuild.native.printing import print_blob_source  # few models need it

    values = print_blob_source(program, source, model_id, request.placement)
    files = codegen_files(name, [code, values], header, program.headers, single=False)
    blob = CodegenFile(blob_path(name, "bin"), program.blob.data(model_id))
    return (*files, blob, CodegenFile(blob_path(name, "txt"), program.blob.structure.encode()))
