"""Print the static workspace that models share if they never run at the same time.

Each model has its own workspace by default, so that two of them can run at the same time. Firmware that runs one after
the other needs only the largest. The difficulty: archives are compiled one by one, and none knows which others will be
in the image. The shared workspace is therefore a *common* symbol in each model. Linkers merge common symbols of the
same name into one variable, which has the size of the largest and the strictest alignment. So it fits the models of
each image, and no file of the build has to list them. A model that is added or removed changes no code of the others.

In other memories than the usual RAM, each model has a static arena in a section of its own (``keys.shared_section``),
and the linker script that mlfbuild writes puts these sections at one address, followed by as many bytes as the largest.
Linkers have no common symbols in sections, and a section is placed by any script: if it does not know the names, arenas
are one behind the other.

The rules:

1. The name is the same in all models (``SHARED_WORKSPACE``), and there is no initial value: only that is a common
   symbol. Models that may run at the same time have several, with numbers (``Placement.shared_workspace``). The type
   may differ, as linkers compare only size and alignment. A common symbol cannot be in a section that the project
   names, so it goes to the usual place for uninitialised data.
2. Code that is compiled without NDEBUG checks whether the workspace is in use, and then returns an error (``BUSY``).
   With NDEBUG nothing is checked, and two calls at a time give wrong results.
3. The check is a flag, a weak symbol for the same reason: one for all models of a workspace. It is claimed by an
   atomic exchange if the core has one. Cores without (Armv6-M) read and write it, and a call between the two is not
   detected.
4. The flag is claimed around the whole run, including the first initialisation of a state.

For example, models of 9,840 and 28,288 bytes of arena in one image have a workspace of 28,288 bytes instead of 38,128.

If the compiler does not support common symbols (not GNU C, or not ELF), each model has its own workspace, which needs
more memory but is correct. State is never shared, because it outlives a run. Only the static entry uses the shared
workspace: the reentrant one gets its memory from the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from string import Template

from mlfbuild.library import brief

BUSY = -2
"""The result of ``tvmgen_<model>_run`` if another call uses the workspace; the others mean invalid arguments."""


def print_shared_workspace(
    prefix: str, workspace: str, declarator: str, attributes: str, flag_attributes: str
) -> list[str]:
    """Return the definition of the shared ``workspace``, and of functions that claim and release it.

    These are called ``<prefix>_enter`` and ``<prefix>_leave``. ``declarator`` has the type and the name, or is empty if
    the model has no arena in the usual RAM; ``attributes`` must make it a common symbol, and ``flag_attributes`` the
    flag a weak one.
    """
    text = Path(__file__).with_name("shared_workspace.c").read_text(encoding="utf-8")
    text = text if declarator else text.partition("\n\n")[2]
    values = {"prefix": prefix, "declarator": declarator, "attributes": attributes, "flag_attributes": flag_attributes}
    return Template(text).substitute(values, flag=f"{workspace}_busy").splitlines()


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
