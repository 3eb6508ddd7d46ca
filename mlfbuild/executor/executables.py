"""Decide which files a build compiles so that a module has TVM's C interface.

Modules of the native compiler for the AOT executor already have it. Code of other compilers is built in *units*, which
rename the symbols that all modules define, so that any number of modules can be linked, each with its own workspace.

``chosen_module`` chooses what to call in an archive by name, and ``check_described`` refuses modules whose archive does
not record their inputs and outputs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from mlfbuild.core import InputFileError, UnsupportedModelError, UsageError, listed
from mlfbuild.executor.arguments import graph_arguments
from mlfbuild.executor.entry import module_notice, name_in_c, print_around
from mlfbuild.executor.graph_plan import GraphPlan, plan_graph
from mlfbuild.executor.graph_source import GraphSource, RunFunction, print_graph
from mlfbuild.executor.identity import print_identity, read_identity
from mlfbuild.executor.kernel_workspace import kernel_workspace
from mlfbuild.executor.kernels import Kernels
from mlfbuild.executor.operators import operator_functions
from mlfbuild.executor.packed import packed_entry, packed_name, packed_plan
from mlfbuild.executor.pools import PlacedPools, passed_pools, placed_pools, why_not_moved, why_not_shared
from mlfbuild.executor.runtime import BUNDLED_FOLDER, FOLDER, RUNTIME_FOLDER, runtime_files
from mlfbuild.executor.static_memory import StaticMemory
from mlfbuild.executor.units import owner_name, units
from mlfbuild.library import (
    INCLUDE_DIR as BUNDLED_INCLUDE_DIR,
    OPERATOR,
    Array,
    CInterface,
    CodegenFile,
    Content,
    Library,
    Member,
    Module,
    TensorInfo,
    facts_header,
    guarded,
    interface_parts,
    print_hook_type,
    print_static_hooked_run,
    print_static_pools_declaration,
    struct_prefix,
    symbol_prefix,
)
from mlfbuild.library.cgen import LICENCE, WORKSPACE_SECTION, busy_name, chooses_section, member_name, print_busy
from mlfbuild.library.graph_json import parse_graph
from mlfbuild.library.keys import Placement


def callable_modules(module: Module) -> tuple[Module, ...]:
    """Return what can be called of ``module``, each with inputs and outputs: itself, or an operator's functions.

    An archive of operator style has one module with any number of functions, each of which firmware can call. The list
    is empty if its metadata does not record their arguments.
    """
    return operator_functions(module) if module.style == OPERATOR else (module,)


def chosen_module(library: Library, name: str | None, where: str) -> Module:
    """Return the network or operator ``name`` of the archive ``where``; ``None`` selects the only one.

    The result uses mlfbuild's runtime, because the archive's own runtime is only part of an unpacked tree.

    Raises ``UsageError`` if the archive does not have ``name``, or has several and ``name`` is ``None``.
    """
    modules = {called.name: called for module in library.modules for called in callable_modules(module)}
    if name is None and len(modules) == 1:
        (name,) = modules
    if name is None or name not in modules:
        raise UsageError(
            "module-not-chosen" if name is None else "unknown-module",
            place=where,
            reason="the archive has several modules" if name is None else f"the archive has no module {name!r}",
            hint=f"choose one of {listed(list(modules))}",
        )
    return replace(modules[name], runtime="")


def check_described(module: Module) -> None:
    """Raise ``UnsupportedModelError``, which names what would record them, if inputs or outputs are unknown.

    The metadata of full-model archives has inputs and outputs since TVM 0.11. For older ones, reading takes
    them from the graph or the Relay text, so that only archives without either fail here.
    """
    missing = [kind for kind, tensors in (("inputs", module.inputs), ("outputs", module.outputs)) if not tensors]
    if missing:
        relay = "the Relay text does not determine them" if module.source_text else "there is no Relay text"
        raise UnsupportedModelError(
            "module-without-ports",
            place=module.name,
            reason=f"the archive does not record types and sizes of the {' and '.join(missing)}: "
            f"metadata.json lacks them, as in exports of TVM before 0.11, and {relay}",
            hint=f"add `{'` and `'.join(missing)}` to memory.functions.main[0] in metadata.json, such as "
            '{"x": {"dtype": "int8", "size": 490}}, or the Relay text of the export with its types',
        )


INCLUDE_DIR = f"{FOLDER}/include"
"""Folder of an unpacked tree for the generated headers of modules that have none."""
_NAME = re.compile(r"\w+", re.ASCII)
_ANYWHERE = Placement()
_ABOUT = ("All tensors are in a static workspace: one call at a time.",)
_ABOUT_SHARED = (
    "All tensors are in a static workspace, {}, which other",
    "modules of the firmware use too: one call of any of them at a time.",
)
_ABOUT_HOOKED = ("An operator is a call of the graph. After a cancelled run the outputs are undefined.",)
_RESULTS = r"\return 0, -1 if a pointer is NULL, {}or the result of a kernel that failed"


@dataclass(frozen=True)
class Executable:
    """The sources of a module with TVM's C interface; paths are relative to the tree."""

    files: tuple[str, ...]
    """The files to link: sources, which are compiled first, and objects."""
    include_dirs: tuple[str, ...]
    """Include folders for the firmware."""
    private_include_dirs: tuple[str, ...]
    """Include folders for these sources only."""
    generated: Mapping[str, Content] = field(default_factory=dict)
    """The files that are not in the archive: generated ones and the runtime's headers."""
    workspace_size: int = 0
    """Bytes of the generated static workspace; 0 if the module's own code or its caller provides all memory."""


def executable(module: Module, placement: Placement = _ANYWHERE) -> Executable | None:
    """Return how ``module`` is built; ``None`` if it is complete or has no code, so that nothing must be generated.

    ``placement`` has the sections of generated data. Raises ``UsageError`` if it places a workspace that the module's
    own code defines, or shares one that cannot be shared, ``InputFileError`` and ``UnsupportedModelError`` if the graph
    or the code cannot be run, or the tensors of a packed function are unknown, and ``CheckFailedError`` if code calls a
    function that is not defined.
    """
    kernels = Kernels(module)
    if not kernels.files or (module.complete and not placement.shares_workspace):
        return None
    if not _NAME.fullmatch(module.name):
        raise InputFileError(
            "module-name-not-c",
            place=f"{module.name!a}",
            reason="the name of the module is not a C identifier",
            hint="rename it with `mlfbuild convert --module-name`, using letters, digits and _",
        )
    mistake = why_not_shared(module, placement.shared_workspace) if placement.shares_workspace else None
    if mistake is not None:
        raise mistake.error(f"{module.name}: share-workspace")
    if module.complete:
        # Complete code needs units only to move its pools: without pools there is nothing to share.
        return _with_interface(kernels, placement) if placed_pools(kernels) else None
    kernels.require_called()
    found = _executable(kernels, placement)
    own = module.executor != "graph" and not module.model_id  # the native compiler writes the section into the code
    placed = (found and found.workspace_size) or _pools(kernels, placement) or passed_pools(module)
    # Memory for which the code names no section is in the usual one anyway.
    if chooses_section(placement.workspace) and own and (why_not_moved(kernels) or not placed):
        raise _not_placed(kernels)
    return found


def _not_placed(kernels: Kernels) -> UsageError:
    name, why, hint = kernels.module.name, why_not_moved(kernels), "remove the key"
    passed = [pool.name for pool in kernels.module.pools if pool.kind == "workspace" and pool.external]
    if why:
        hint = f"{hint}, or place *libmlf_{name}.a:*({WORKSPACE_SECTION}) in the linker script"
    elif passed:
        why = f"the firmware passes it ({', '.join(passed)}), and its header does not define the size"
        hint = f"{hint}, and place what the firmware passes"
    reason = f"the workspace cannot be placed: {why or 'it has none'}"
    return UsageError("placement-without-workspace", place=name, reason=reason, hint=hint)


def _executable(kernels: Kernels, placement: Placement) -> Executable | None:
    module = kernels.module
    if module.style == OPERATOR:
        return _with_functions(kernels, placement)
    if module.executor == "graph" and module.graph_json is not None:
        return _with_graph(kernels, bytes(module.graph_json), placement)
    if module.interface == "packed":
        check_described(module)
        return _with_entries(kernels, packed_plan([module]), [module], {}, packed_entry(kernels), placement)
    return _with_interface(kernels, placement) if module.interface == "c" else None


def with_c_interface(module: Module) -> Module:
    """Return ``module`` with the header of its C interface, even if that is generated.

    ``module`` itself is returned if its archive has the header. Otherwise the result has the interface ``c`` and the
    generated headers among its code; for an operator archive with a single function, it is the module of that function.
    Raises as ``executable``.
    """
    found = executable(module)
    headers = [path for path in (found.generated if found else ()) if PurePosixPath(path).is_relative_to(INCLUDE_DIR)]
    if found is None or not headers:
        return module
    generated = (
        CodegenFile(PurePosixPath("host/include", PurePosixPath(path).name), found.generated[path]) for path in headers
    )
    seen = callable_modules(module)[0] if len(headers) == 1 else module
    return replace(seen, interface="c", codegen=(*module.codegen, *generated))


def _with_graph(kernels: Kernels, graph_json: bytes, placement: Placement) -> Executable:
    module = kernels.module
    graph = parse_graph(graph_json, f"{module.name}.graph")
    arguments = graph_arguments(graph, kernels)
    plan = plan_graph(graph, arguments.params, module.name, arguments.linked)
    for name in plan.functions:
        # Checked here, because the linker would blame a generated file that the user does not know.
        kernels.require(name, "the graph")
    return _with_entries(kernels, plan, [module], module.params, {}, placement, hooked=module.hook)


def _with_functions(kernels: Kernels, placement: Placement) -> Executable:
    functions = operator_functions(kernels.module)
    if not functions:
        raise UnsupportedModelError(
            "operator-arguments-unknown",
            place=kernels.module.name,
            reason="the metadata does not list the arguments of the operator's functions",
        )
    for function in functions:
        kernels.require(function.name, "firmware")
    renamed = {function.name: packed_name(function) for function in functions}
    return _with_entries(kernels, packed_plan(functions), functions, {}, renamed, placement)


def _with_entries(
    kernels: Kernels,
    plan: GraphPlan,
    called: Sequence[Module],
    params: Mapping[str, Array],
    renamed: Mapping[str, str],
    placement: Placement,
    *,
    hooked: bool = False,
) -> Executable:
    """Return how the modules ``called`` are built: each has a function for firmware and as many calls of ``plan``.

    With ``hooked``, which requires a single module, the run function calls a hook before each call.
    """
    module = kernels.module
    needed = kernel_workspace(kernels)
    interfaces = [
        CInterface(each.name, _members(each, each.inputs), _members(each, each.outputs), plan.storage_size + needed)
        for each in called
    ]
    # Each function of an operator is one call; a graph is one function with all calls.
    count = len(plan.calls) // len(called)
    entries = tuple(RunFunction(interface, at * count, count) for at, interface in enumerate(interfaces))
    pools = _pools(kernels, placement)
    code = units(kernels, {**renamed, **_without_pools(module, pools)}, pools=pools)
    entry = f"{FOLDER}/{module.name}_entry.c"
    owner, bundled = owner_name(module.name, renamed), bool(module.runtime)
    name = name_in_c(interfaces[0].prefix) if hooked else ""
    known = module.network.operators if module.network is not None else ()
    identity, reading = print_identity(module), read_identity(module)
    appended = sum(not pool.external for pool in module.pools)
    source = GraphSource(
        owner, entries, plan, params, needed, bundled, placement, pools, appended, name, known, identity, reading
    )
    calls = count if hooked else None
    headers = dict(_header(module, interface, calls, source.memory) for interface in interfaces)
    text = print_graph(source, module_notice(module.name))
    generated = {**_runtime(module), **code, entry: text.encode(), **headers}
    folders = (INCLUDE_DIR, *_include_dirs(module))
    return Executable((entry, *code), folders, _runtime_dirs(module), generated, plan.storage_size + needed)


def _pools(kernels: Kernels, placement: Placement) -> tuple[PlacedPools, ...]:
    """Return the pools of the module's code that are in the shared workspace, or in one with a section.

    The native compiler writes the section into its code.
    """
    placed = chooses_section(placement.workspace) and not kernels.module.model_id
    moved = placement.shares_workspace or placed
    return placed_pools(kernels) if moved else ()


def _without_pools(module: Module, pools: Collection[PlacedPools]) -> dict[str, str]:
    """Return the new name of the main function of a native module, which must not run before ``pools`` are placed."""
    main = f"{symbol_prefix(module.name)}___tvm_main__"
    return {main: f"mlf_{module.name}_inner_main"} if pools and module.model_id else {}


def _header(module: Module, interface: CInterface, calls: int | None, memory: StaticMemory) -> tuple[str, bytes]:
    """Return path and text of the header of ``interface``; it includes the header of a native module's facts.

    ``calls`` is the number of hook calls of a run; ``None`` if runs cannot be hooked. ``memory`` is that of runs.
    """
    name = name_in_c(interface.prefix)
    shared = memory.shared
    about = [line.format(memory.name) for line in _ABOUT_SHARED] if shared else _ABOUT
    busy = [print_busy(name)] if shared else []
    hook = [] if calls is None else [*print_hook_type(name, calls), print_static_hooked_run(name, *_ABOUT_HOOKED)]
    facts = facts_header(module.name)
    own = [f'#include "{facts}"'] if any(file.path.name == facts for file in module.codegen) else []
    results = _RESULTS.format(f"{busy_name(name)}, " if shared else "")
    parts = [*interface_parts(interface, about, [results]), *busy, *hook, *own]
    text = guarded(f"{interface.prefix.upper()}_H_", module_notice(interface.name), parts)
    return f"{INCLUDE_DIR}/{interface.prefix}.h", text.encode()


def _with_interface(kernels: Kernels, placement: Placement) -> Executable:
    """Return how a module with the C interface is built: its code, and a workspace if it needs a generated one."""
    module = kernels.module
    name, header = struct_prefix(module.name), symbol_prefix(module.name)
    kernels.require(f"{header}_run", "firmware")
    needed = kernel_workspace(kernels)
    renamed, stubs = _spelling(name, header)
    pools = _pools(kernels, placement)
    passed = passed_pools(module) if placement.workspace or placement.shares_workspace else ()
    memory = StaticMemory(name, needed, placement, pools=pools, passed=passed)
    around = bool(needed or module.runtime or pools or passed)
    if around:
        runs = ("run", "run_hooked") if module.complete else ("run",)
        renamed |= {f"{header}_{run}": f"mlf_{module.name}_inner_{run}" for run in runs} | _without_pools(module, pools)
    code = units(kernels, renamed, [f"{name}.h"] if stubs else [], pools)
    if around:
        around_it = print_around(module, memory)
        code[f"{FOLDER}/{module.name}_entry.c"] = around_it.encode()
    headers = _pools_header(module) if passed else {}
    generated = {**_runtime(module), **stubs, **code, **headers}
    folders = (*([INCLUDE_DIR] if headers else []), *_include_dirs(module))
    return Executable(tuple(code), folders, _runtime_dirs(module), generated, needed)


def _pools_header(module: Module) -> dict[str, Content]:
    """Return the header of the function that returns the pools that firmware passes, and its path."""
    name, prefix = facts_header(module.name), struct_prefix(module.name)
    declared = print_static_pools_declaration(name_in_c(prefix), workspace_io=module.workspace_io)
    guard = f"{name.removesuffix('.h').upper()}_H_"
    text = guarded(guard, module_notice(module.name), [f'#include "{prefix}.h"', declared])
    return {f"{INCLUDE_DIR}/{name}": text.encode()}


def _runtime(module: Module) -> dict[str, Content]:
    """Return the runtime's headers, and the configuration of the bundled runtime if the module uses it."""
    if not module.runtime:
        return runtime_files()
    text = f'{LICENCE}/* Generated by mlfbuild. Do not edit. */\n#include "../../{module.runtime}"\n'
    return {**runtime_files(), f"{BUNDLED_FOLDER}/crt_config.h": text.encode()}


def _runtime_dirs(module: Module) -> tuple[str, ...]:
    return (BUNDLED_INCLUDE_DIR, BUNDLED_FOLDER) if module.runtime else (RUNTIME_FOLDER,)


def _spelling(name: str, code: str) -> tuple[dict[str, str], dict[str, Content]]:
    """Return renamed symbols and a further file for a module whose code spells the names of the interface differently.

    TVM's header has names in lower case, but its code has the module's own spelling and includes a header of that name.
    """
    if name == code:
        return {}, {}
    kinds = ("inputs", "outputs", "workspace_pools", "devices", "map_inputs", "map_outputs", "run")
    stub = f"{LICENCE}/* Empty: {name}.h is already included. Generated by mlfbuild. Do not edit. */\n"
    return {f"{code}_{kind}": f"{name}_{kind}" for kind in kinds}, {f"{RUNTIME_FOLDER}/{code}.h": stub.encode()}


def _include_dirs(module: Module) -> tuple[str, ...]:
    headers = (file.path for file in module.codegen if file.path.match("*/include/*"))
    return tuple(sorted({f"codegen/{path.parts[0]}/include" for path in headers}))


def _members(module: Module, tensors: Collection[TensorInfo]) -> tuple[Member, ...]:
    members = tuple(Member(member_name(tensor.name), tensor.size) for tensor in tensors)
    if len({member.name for member in members}) < len(members):
        names = ", ".join(repr(tensor.name) for tensor in tensors)
        raise InputFileError(
            "tensor-names-equal-in-c",
            place=module.name,
            reason=f"the tensor names {names} are equal in C",
            hint="rename them in the model",
        )
    return members
