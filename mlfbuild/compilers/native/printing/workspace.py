"""Print the static workspace of a model: its own, or one shared by models that never run at the same time.

A shared workspace is a *common* symbol in each model. Linkers merge common symbols of the same name into one variable,
which has the size of the largest and the strictest alignment. So it fits the models of each image, and no file of the
build has to list them. If the compiler does not support common symbols, each model has its own workspace, which needs
more memory but is correct.

Code that is compiled without NDEBUG checks whether the shared workspace is in use, and then returns an error.
"""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.cgen import ALIGNMENT, WORKSPACE_SECTION
from mlfbuild.compilers.native.printing.program import LinkedModel
from mlfbuild.compilers.native.printing.state import print_beginning
from mlfbuild.compilers.types import Placement
from mlfbuild.library import SHARED_WORKSPACE

BUSY = -2
"""The result of ``tvmgen_<model>_run`` if another call uses the workspace; -1 means invalid arguments."""
_FLAG = f"{SHARED_WORKSPACE}_busy"


def shares_workspace(program: LinkedModel, placement: Placement) -> bool:
    """Return whether the model uses the shared workspace; a model without intermediate tensors does not."""
    return placement.shares_workspace and program.plan.arena_size > 0


def print_attributes(program: LinkedModel, placement: Placement, *, elf: bool) -> Iterator[str]:
    """Yield the macros with the attributes of the workspace and its flag, for GNU C and ELF or other compilers."""
    macro = f"{program.prefix.upper()}_WORKSPACE"
    aligned = f"MLF_ALIGNED({ALIGNMENT})"
    if not shares_workspace(program, placement):
        section = f'__attribute__((section("{placement.workspace or WORKSPACE_SECTION}"))) ' if elf else ""
        yield f"#define {macro} {section}{aligned}"
        return
    yield f"#define {macro} {'__attribute__((common))' if elf else 'static'} {aligned}"
    yield f"#define {macro}_FLAG {'__attribute__((weak))' if elf else 'static'}"


def print_workspace(program: LinkedModel, placement: Placement) -> str:
    """Return the definition of the workspace; empty if the model needs none."""
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
    """Yield the body of ``tvmgen_<model>_run``, or of the hooked run function that it calls."""
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
