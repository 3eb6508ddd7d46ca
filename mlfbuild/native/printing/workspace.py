"""Print the static workspace of a model: its own, or one shared by models that never run at the same time.

``cgen/sharing`` describes the shared workspace. If the compiler does not support common symbols, each model has its own
workspace, which needs more memory but is correct.

A common symbol is in the usual RAM. Arenas that are shared in other memories are static, each in a section of its own,
which the linker script of the tree puts at the same address (``shared_section``). A script that does not know these
sections gives each arena its own bytes, which is correct as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlfbuild.library import brief, print_static_pools
from mlfbuild.library.cgen import (
    SCRATCH_TYPES,
    WORKSPACE_SECTION,
    busy_name,
    print_exclusive_call,
    print_shared_workspace,
    union_members,
)
from mlfbuild.library.keys import Npu, Placement, shared_section
from mlfbuild.native.graph import C_TYPES
from mlfbuild.native.memory import StorageKind
from mlfbuild.native.printing.arenas import PrintedWorkspace, arena_at
from mlfbuild.native.printing.checks import print_null_check
from mlfbuild.native.printing.functions import print_definition
from mlfbuild.native.printing.program import LinkedModel
from mlfbuild.native.printing.state import print_beginning


def shares_workspace(program: LinkedModel, placement: Placement) -> bool:
    """Return whether the model's code uses the shared workspace; a model without intermediate tensors does not.

    Neither does packed code: around it, unpacking the archive generates code that moves its workspace there.
    """
    return bool(placement.shared_workspace) and program.plan.arena_size > 0 and not program.form.packed


def print_memory_types(program: LinkedModel) -> Iterator[str]:
    """Yield the types of the workspace and of the state: unions of the types of what the code stores there.

    A union, because C permits access to its bytes by each type that is a member. Workspace and state have a type only
    if they have bytes.
    """
    for each in program.workspaces:
        if each.size:
            where = f" in {each.memory}" if each.memory else ""
            yield _union(each.type, f"workspace{where}", each.size, _arena_types(program, each))
    if program.plan.state_size:
        types = _types(program, (name for name, location in program.plan.locations.items()
                                 if location.area is StorageKind.STATE))  # fmt: skip
        yield _union(f"mlf_{program.name}_state", "state", program.plan.state_size, types)


def _union(name: str, kind: str, size: int, types: set[str]) -> str:
    return "\n".join(
        [
            brief(f"memory for a {kind}: it may hold elements of each of these types at any time"),
            f"union {name} {{",
            *(f"  {member}" for member in union_members(size, types)),
            "};",
        ]
    )


def _arena_types(program: LinkedModel, workspace: PrintedWorkspace) -> set[str]:
    """Return the C types of the elements that ``workspace`` holds."""
    alone = not workspace.memory
    tensors = (
        name
        for name, location in program.plan.locations.items()
        if location.area is StorageKind.ARENA and (alone or workspace.holds(location.position))
    )
    scratch = any(
        step.function.call.scratch and (alone or workspace.holds(program.plan.scratch[step.index]))
        for step in program.steps
        if step.function is not None
    )
    weights = program.weights
    streamed = weights is not None and weights.blocks and (alone or weights.memory.name == workspace.memory)
    return _types(program, tensors) | SCRATCH_TYPES if scratch or streamed else _types(program, tensors)


def _types(program: LinkedModel, tensors: Iterable[str]) -> set[str]:
    return {C_TYPES[program.graph.tensor(name).dtype] for name in tensors}


def print_attributes(program: LinkedModel, placement: Placement, *, elf: bool) -> Iterator[str]:
    """Yield the macros with the attributes of the workspace and its flag, for GNU C and ELF or other compilers."""
    aligned, shares = f"MLF_ALIGNED({program.alignment})", shares_workspace(program, placement)
    for each in program.workspaces:
        name = each.section_in(placement)
        if shares and each.is_common(placement):
            # A common symbol has no section.
            yield f"#define {each.macro} {'__attribute__((common))' if elf else 'static'} {aligned}"
            continue
        name = shared_section(name, program.name) if shares else name
        section = f'__attribute__((section("{name}"))) ' if elf else ""
        yield f"#define {_macro(each, shares=shares)} {section}{aligned}"
    if shares:
        # Weak, so that the linker keeps one flag for all models that share.
        yield f"#define {_flag(program)} {'__attribute__((weak))' if elf else 'static'}"


def _macro(workspace: PrintedWorkspace, *, shares: bool) -> str:
    """Return the macro of a static arena; one with another name is not moved by ``executor/pools``."""
    return f"{workspace.macro.removesuffix('WORKSPACE')}SHARED" if shares else workspace.macro


def _flag(program: LinkedModel) -> str:
    return f"{program.prefix.upper()}_WORKSPACE_FLAG"


def print_workspace(program: LinkedModel, placement: Placement) -> str:
    """Return the definition of the workspaces; empty if the model needs none."""
    if not program.plan.arena_size:
        return ""
    shares = shares_workspace(program, placement)
    lines: list[str] = []
    common: PrintedWorkspace | None = None
    for each in program.workspaces:
        if shares and each.is_common(placement):
            common = each
        else:
            lines += _definition(each, _macro(each, shares=shares))
    if shares:
        declarator = "" if common is None else f"union {common.type} {placement.shared_workspace}"
        macro = "" if common is None else common.macro
        lines += [] if common is None else [_peak_use(common)]
        lines += print_shared_workspace(program.prefix, placement.shared_workspace, declarator, macro, _flag(program))
        lines += [] if common is None else _share_check(common)
    return "\n".join(lines)


def _definition(workspace: PrintedWorkspace, macro: str) -> Iterator[str]:
    yield _peak_use(workspace)
    yield f"{macro} static union {workspace.type} {workspace.variable};"
    yield from _share_check(workspace)


def _share_check(workspace: PrintedWorkspace) -> Iterator[str]:
    if workspace.share is not None:
        yield f"/* Does not compile if the model takes more than {workspace.share} bytes of {workspace.memory}. */"
        # C99 has no static assertion; an array of a negative size is an error in every compiler.
        fits = f"sizeof(union {workspace.type}) <= {workspace.share}u"
        yield f"typedef char {workspace.variable}_fits[({fits}) ? 1 : -1];"


def _peak_use(workspace: PrintedWorkspace) -> str:
    return f"/* Peak use: {workspace.lower_bound} of {workspace.size} bytes. */"


def print_npu_memory(program: LinkedModel, npu: Npu | None) -> str:
    """Return the definition of the memory of an NPU that has its own; empty if there is none.

    It is static, although run functions are reentrant: the driver lets one run at a time use an NPU.
    """
    if not program.npu_memory:
        return ""
    section = (npu.fast_section if npu is not None else None) or f"{WORKSPACE_SECTION}.npu"
    return "\n".join(
        [
            "/* The NPU's own memory: it holds nothing between calls of the NPU. */",
            "#if defined(__GNUC__) && defined(__ELF__)",
            f'__attribute__((section("{section}")))',
            "#endif",
            f"MLF_ALIGNED({program.alignment}) static uint8_t {program.prefix}_npu_workspace[{program.npu_memory}];",
        ]
    )


def print_pool_functions(program: LinkedModel) -> Iterator[str]:
    """Yield the functions of a model with ``io: arena`` that return its static workspace, inputs and outputs."""
    name, prefix, ports = program.name, program.prefix, program.interface
    yield print_static_pools(name, {each.pool: each.static for each in program.workspaces})
    sides = (("inputs", ports.inputs, program.plan.inputs), ("outputs", ports.outputs, program.plan.outputs))
    for kind, of_kind, places in sides:
        pairs = [(port, place.position, arena_at(program.workspaces, place.position))
                 for port, place in zip(of_kind, places, strict=True)]  # fmt: skip
        used = [each for each in program.workspaces if each in [arena for *_, arena in pairs]]
        used = used or [program.workspaces[0]]
        body = [
            *(f"    uint8_t *const {each.pointer} = (uint8_t *)workspace_pools->{each.pool};" for each in used),
            f"    struct {prefix}_{kind} {kind};",
            "",
            *(f"    {kind}.{port.member} = &{arena.pointer}[{at - arena.base}];" for port, at, arena in pairs),
            *([] if of_kind else [f"    {kind}.unused = {used[0].pointer};"]),
            f"    return {kind};",
        ]
        head = f"struct {prefix}_{kind} {prefix}_map_{kind}(struct {prefix}_workspace_pools *workspace_pools)"
        yield print_definition(head, body)


def print_static_call(program: LinkedModel, placement: Placement) -> Iterator[str]:
    """Yield the body of ``tvmgen_<model>_run``, or of the hooked run function that it calls."""
    name, prefix = program.name, program.prefix
    run = f"mlf_{name}_run_hooked" if program.hook else f"mlf_{name}_run"
    more = (f", &{prefix}_state" if program.resets else "") + (", hook, context" if program.hook else "")
    if program.form.arena_io:
        yield from print_null_check(name, ["workspace_pools"])
        yield from print_beginning(program, placement)
        pools = ", ".join(f"workspace_pools->{each.pool}" for each in program.workspaces)
        yield f"    return {run}({pools}{more});"
        return
    if not shares_workspace(program, placement):
        workspaces = ", ".join(each.static for each in program.workspaces)
        yield from print_beginning(program, placement)
        yield f"    return {run}(inputs, outputs, {workspaces}{more});"
        return
    shared = ", ".join(
        f"&{placement.shared_workspace}" if each.is_common(placement) else each.static for each in program.workspaces
    )
    call = f"{run}(inputs, outputs, {shared}{more})"
    yield from print_exclusive_call(prefix, busy_name(name), call, print_beginning(program, placement))
