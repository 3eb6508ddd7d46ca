"""Prints the static workspace of a model: its own, or one for all models of an image that never run at the same time.

A shared one is a *common* symbol in each of them. Linkers make one variable of common symbols of the same name, as
large as the largest and as aligned as the most aligned: what the models of this image need, however many of them it
has, and no file of the build has to know about it. Where the compiler has no such symbols each model keeps its own,
which takes memory and is as right.

Code that is compiled without NDEBUG looks whether the shared workspace is in use, and refuses to run in it then.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.cgen import ALIGNMENT, WORKSPACE_SECTION
from mlfbuild.compilers.native.printing.program import LinkedModel
from mlfbuild.compilers.native.printing.state import print_beginning
from mlfbuild.compilers.types import Placement
from mlfbuild.library import SHARED_WORKSPACE

BUSY = -2
"""What ``tvmgen_<model>_run`` returns where somebody else runs in the workspace; -1 is about the arguments."""
_FLAG = f"{SHARED_WORKSPACE}_busy"


def shares_workspace(program: LinkedModel, placement: Placement) -> bool:
    """Whether the model runs in the shared workspace; one that needs none does not."""
    return placement.shares_workspace and program.plan.arena_size > 0


def print_attributes(program: LinkedModel, placement: Placement, *, elf: bool) -> Iterator[str]:
    """Yield the macros that stand before the workspace and its flag, for GNU C and ELF or for everybody else."""
    macro = f"{program.prefix.upper()}_WORKSPACE"
    aligned = f"MLF_ALIGNED({ALIGNMENT})"
    if not shares_workspace(program, placement):
        section = f'__attribute__((section("{placement.workspace or WORKSPACE_SECTION}"))) ' if elf else ""
        yield f"#define {macro} {section}{aligned}"
        return
    yield f"#define {macro} {'__attribute__((common))' if elf else 'static'} {aligned}"
    yield f"#define {macro}_FLAG {'__attribute__((weak))' if elf else 'static'}"


def print_workspace(program: LinkedModel, placement: Placement) -> str:
    """Return the definition of the workspace; empty where the model needs none."""
    size, macro = program.plan.arena_size, f"{program.prefix.upper()}_WORKSPACE"
    if not size:
        return ""
    bound = f"/* Peak use: {program.plan.lower_bound} of {size} bytes. */"
    if not shares_workspace(program, placement):
        return f"{bound}\n{macro} static uint8_t {program.prefix}_workspace[{size}];"
    return "\n".join(
        [
            bound,
            "/* A common symbol: the linker merges those of all models into one, as large as the largest. */",
            f"{macro} uint8_t {SHARED_WORKSPACE}[{size}];",
            "",
            "#ifndef NDEBUG",
            "/* Not 0 while a model runs in the shared workspace; also merged into one. */",
            f"{macro}_FLAG volatile uint8_t {_FLAG};",
            "",
            f"static int {program.prefix}_enter(void)",
            "{",
            "#if defined(__GCC_ATOMIC_CHAR_LOCK_FREE) && __GCC_ATOMIC_CHAR_LOCK_FREE == 2",
            f"    return __atomic_exchange_n(&{_FLAG}, 1, __ATOMIC_ACQUIRE) == 0;",
            "#else",
            "    /* This core has no atomic exchange: a call between these two lines is not detected. */",
            f"    const int entered = {_FLAG} == 0;",
            f"    {_FLAG} = 1;",
            "    return entered;",
            "#endif",
            "}",
            "",
            f"static void {program.prefix}_leave(void)",
            "{",
            "#if defined(__GCC_ATOMIC_CHAR_LOCK_FREE) && __GCC_ATOMIC_CHAR_LOCK_FREE == 2",
            f"    __atomic_store_n(&{_FLAG}, 0, __ATOMIC_RELEASE);",
            "#else",
            f"    {_FLAG} = 0;",
            "#endif",
            "}",
            "#endif",
        ]
    )


def print_static_call(program: LinkedModel, placement: Placement) -> Iterator[str]:
    """Yield the body of ``tvmgen_<model>_run``, or of the hooked one that it calls."""
    name, prefix = program.name, program.prefix
    run = f"mlf_{name}_run_hooked" if program.hook else f"mlf_{name}_run"
    more = (f", {prefix}_state" if program.resets else "") + (", hook, context" if program.hook else "")
    if not shares_workspace(program, placement):
        workspace = f"{prefix}_workspace" if program.plan.arena_size else "NULL"
        yield from print_beginning(program, placement)
        yield f"    return {run}(inputs, outputs, {workspace}{more});"
        return
    yield "#ifndef NDEBUG"
    yield "    int32_t status;"
    yield f"    if (!{prefix}_enter()) {{"
    yield f"        return MLF_{name.upper()}_WORKSPACE_BUSY;"
    yield "    }"
    yield from print_beginning(program, placement)
    yield f"    status = {run}(inputs, outputs, {SHARED_WORKSPACE}{more});"
    yield f"    {prefix}_leave();"
    yield "    return status;"
    yield "#else"
    yield from print_beginning(program, placement)
    yield f"    return {run}(inputs, outputs, {SHARED_WORKSPACE}{more});"
    yield "#endif"
