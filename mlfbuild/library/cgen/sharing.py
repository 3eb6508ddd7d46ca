"""Print the static workspace that models share if they never run at the same time.

It is a *common* symbol in each model. Linkers merge common symbols of the same name into one variable, which has the
size of the largest and the strictest alignment. So it fits the models of each image, and no file of the build has to
list them.

Code that is compiled without NDEBUG checks whether the shared workspace is in use, and then returns an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mlfbuild.library import SHARED_WORKSPACE, brief

BUSY = -2
"""The result of ``tvmgen_<model>_run`` if another call uses the workspace; -1 means invalid arguments."""
_FLAG = f"{SHARED_WORKSPACE}_busy"


def print_shared_workspace(prefix: str, declarator: str, attributes: str, flag_attributes: str) -> list[str]:
    """Return the definition of the workspace, and of functions that claim and release it.

    These are called ``<prefix>_enter`` and ``<prefix>_leave``. ``declarator`` has the type and the name
    ``SHARED_WORKSPACE``; ``attributes`` must make it a common symbol, and ``flag_attributes`` the flag a weak one.
    """
    return [
        "/* A common symbol: the linker merges those of all models into one, as large as the largest. */",
        f"{attributes} {declarator};",
        "",
        "#ifndef NDEBUG",
        "/* Not 0 while a model runs in the shared workspace; also merged into one. */",
        f"{flag_attributes} volatile uint8_t {_FLAG};",
        "",
        f"static int {prefix}_enter(void)",
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
        f"static void {prefix}_leave(void)",
        "{",
        "#if defined(__GCC_ATOMIC_CHAR_LOCK_FREE) && __GCC_ATOMIC_CHAR_LOCK_FREE == 2",
        f"    __atomic_store_n(&{_FLAG}, 0, __ATOMIC_RELEASE);",
        "#else",
        f"    {_FLAG} = 0;",
        "#endif",
        "}",
        "#endif",
    ]


def print_exclusive_call(prefix: str, busy: str, call: str, before: Iterable[str] = ()) -> Iterator[str]:
    """Yield the body of a function that returns ``call``, or ``busy`` if another call uses the workspace.

    ``before`` are the statements before the call.
    """
    before = list(before)
    yield "#ifndef NDEBUG"
    yield "    int32_t status;"
    yield f"    if (!{prefix}_enter()) {{"
    yield f"        return {busy};"
    yield "    }"
    yield from before
    yield f"    status = {call};"
    yield f"    {prefix}_leave();"
    yield "    return status;"
    yield "#else"
    yield from before
    yield f"    return {call};"
    yield "#endif"


def busy_name(model: str) -> str:
    """Return the name of the macro of ``BUSY`` for ``model``."""
    return f"MLF_{model.upper()}_WORKSPACE_BUSY"


def print_busy(model: str) -> str:
    """Return the definition of the macro of ``BUSY``, with its comment."""
    about = (
        f"result of tvmgen_{model}_run if another call is running in the shared workspace",
        "Only code compiled without NDEBUG checks this; with NDEBUG the results of both calls are wrong.",
    )
    return f"{brief(*about)}\n#define {busy_name(model)} ({BUSY})"
