"""Print the static workspace of a model: its own, or one shared by models that never run at the same time.

``cgen/sharing`` describes the shared workspace. If the compiler does not support common symbols, each model has its own
workspace, which needs more memory but is correct.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.library import SHARED_WORKSPACE, WORKSPACE_POOL, brief
from mlfbuild.library.cgen import (
    ALIGNMENT,
    SCRATCH_TYPES,
    WORKSPACE_SECTION,
    busy_name,
    print_exclusive_call,
    print_shared_workspace,
    union_members,
)
from mlfbuild.library.keys import Npu, Placement
from mlfbuild.native.graph import C_TYPES
from mlfbuild.native.memory import StorageKind
from mlfbuild.native.printing.checks import print_null_check
from mlfbuild.native.printing.functions import print_definition
from mlfbuild.native.printing.program import LinkedModel
from mlfbuild.native.printing.state import print_beginning


def shares_workspace(program: LinkedModel, placement: Placement) -> bool:
    """Return whether the model's code uses the shared workspace; a model without intermediate tensors does not.

    Neither does packed code: around it, unpacking the archive generates code that moves its workspace there.
    """
    return placement.shares_workspace and program.plan.arena_size > 0 and not program.form.packed


def print_memory_types(program: LinkedModel) -> Iterator[str]:
    """Yield the types of the workspace and of the state: unions of the types of what the code stores there.

    A union, because C permits access to its bytes by each type that is a member. Workspace and state have a type only
    if they have bytes.
    """
    sizes = {StorageKind.ARENA: program.plan.arena_size, StorageKind.STATE: program.plan.state_size}
    for area, size in sizes.items():
        if size:
            kind = "workspace" if area is StorageKind.ARENA else "state"
            yield "\n".join(
                [
                    brief(f"memory for a {kind}: it may hold elements of each of these types at any time"),
                    f"union mlf_{program.name}_{kind} {{",
                    *(f"  {member}" for member in union_members(size, _types(program, area))),
                    "};",
                ]
            )


def _types(program: LinkedModel, area: StorageKind) -> set[str]:
    """Return the C types of the elements that ``area`` holds."""
    tensors = (name for name, location in program.plan.locations.items() if location.area is area)
    used = {C_TYPES[program.graph.tensor(name).dtype] for name in tensors}
    scratch = area is StorageKind.ARENA and any(function.call.scratch for function in program.functions)
    return used | SCRATCH_TYPES if scratch else used


def print_attributes(program: LinkedModel, placement: Placement, *, elf: bool) -> Iterator[str]:
    """Yield the macros with the attributes of the workspace and its flag, for GNU C and ELF or other compilers."""
    macro = f"{program.prefix.upper()}_WORKSPACE"
    aligned = f"MLF_ALIGNED({ALIGNMENT})"
    if not shares_workspace(program, placement):
        section = f'__attribute__((section("{placement.workspace or WORKSPACE_SECTION}"))) ' if elf else ""
        yield f"#define {macro} {section}{aligned}"
        return
    # A common symbol has no section, so that ``placement.workspace`` does not apply to it.
    yield f"#define {macro} {'__attribute__((common))' if elf else 'static'} {aligned}"
    yield f"#define {macro}_FLAG {'__attribute__((weak))' if elf else 'static'}"


def print_workspace(program: LinkedModel, placement: Placement) -> str:
    """Return the definition of the workspace; empty if the model needs none."""
    size, macro = program.plan.arena_size, f"{program.prefix.upper()}_WORKSPACE"
    if not size:
        return ""
    bound = f"/* Peak use: {program.plan.lower_bound} of {size} bytes. */"
    if not shares_workspace(program, placement):
        return f"{bound}\n{macro} static union mlf_{program.name}_workspace {program.prefix}_workspace;"
    declarator = f"union mlf_{program.name}_workspace {SHARED_WORKSPACE}"
    return "\n".join([bound, *print_shared_workspace(program.prefix, declarator, macro, f"{macro}_FLAG")])


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
            f"MLF_ALIGNED({ALIGNMENT}) static uint8_t {program.prefix}_npu_workspace[{program.npu_memory}];",
        ]
    )


def in_own_section(name: str) -> list[str]:
    """Return the lines before a function that put it in the section ``.text.<name>``, which linkers can drop.

    Without it, GCC puts all functions of a file into one section unless the firmware is built with -ffunction-sections.
    """
    return ["#if defined(__GNUC__) && defined(__ELF__)", f'__attribute__((section(".text.{name}")))', "#endif"]


def print_static_pools_declaration(program: LinkedModel) -> str:
    """Return the declaration of the function that returns the static workspace of a model with ``io: arena``."""
    name = program.name
    about = brief(
        f'returns the memory pools of module "{name}" in a static workspace, for one run at a time',
        "If the firmware does not call it, that workspace is not in the image (-Wl,--gc-sections).",
        rf"\return pools for tvmgen_{name}_map_inputs, tvmgen_{name}_map_outputs and tvmgen_{name}_run",
    )
    return f"{about}\nstruct {program.prefix}_workspace_pools mlf_{name}_static_pools(void);"


def print_pool_functions(program: LinkedModel) -> Iterator[str]:
    """Yield the functions of a model with ``io: arena`` that return its static workspace, inputs and outputs."""
    name, prefix, ports = program.name, program.prefix, program.interface
    workspace = f"&{prefix}_workspace" if program.plan.arena_size else "NULL"
    body = [
        f"    struct {prefix}_workspace_pools pools;",
        "",
        f"    pools.{WORKSPACE_POOL} = {workspace};",
        "    return pools;",
    ]
    head = f"struct {prefix}_workspace_pools mlf_{name}_static_pools(void)"
    yield print_definition(head, body, in_own_section(f"mlf_{name}_static_pools"))
    sides = (("inputs", ports.inputs, program.plan.inputs), ("outputs", ports.outputs, program.plan.outputs))
    for kind, of_kind, places in sides:
        pairs = zip(of_kind, places, strict=True)
        body = [
            f"    uint8_t *const arena = (uint8_t *)workspace_pools->{WORKSPACE_POOL};",
            f"    struct {prefix}_{kind} {kind};",
            "",
            *(f"    {kind}.{port.member} = &arena[{place.position}];" for port, place in pairs),
            *([] if of_kind else [f"    {kind}.unused = arena;"]),
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
        yield f"    return {run}(workspace_pools->{WORKSPACE_POOL}{more});"
        return
    if not shares_workspace(program, placement):
        workspace = f"&{prefix}_workspace" if program.plan.arena_size else "NULL"
        yield from print_beginning(program, placement)
        yield f"    return {run}(inputs, outputs, {workspace}{more});"
        return
    call = f"{run}(inputs, outputs, &{SHARED_WORKSPACE}{more})"
    yield from print_exclusive_call(prefix, busy_name(name), call, print_beginning(program, placement))
