"""The option ``hook`` for archives of other compilers.

Firmware can run a hook before each operator only if mlfbuild executes the graph, or if mlfbuild compiled the model with
``hook: true``. The AOT executor of TVM calls all operators in one function, so there is no point at which to call it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mlfbuild.core import Mistake

if TYPE_CHECKING:
    from mlfbuild.library import Library, Module

HOOK = "hook"
"""The option's name."""


def hooked(library: Library, model: str, where: str) -> Library:
    """Return ``library`` with hooks: the graph executor that mlfbuild generates calls the hook before each operator.

    ``model`` is the model's name, ``where`` names its archive. Raises ``UsageError`` if a module cannot be hooked.
    """
    mistake = why_no_hook(library, where)
    if mistake is not None:
        raise mistake.error(f"{model}: options.{HOOK}")
    return replace(library, modules=tuple(replace(module, hook=True) for module in library.modules))


def why_no_hook(library: Library, where: str) -> Mistake | None:
    """Return why no hook can run between the operators of a module of ``library``; ``None`` if it can in all.

    The mistake is that of the first such module; ``where`` names the archive in its reason. It has no place, which the
    caller adds with ``refused`` or ``Mistake.at``.
    """
    # Only then does the module's name help; otherwise the place stays the file that the user knows.
    several = len(library.modules) > 1
    for module in library.modules:
        mistake = _why_not(module, f"module {module.name} of {where}" if several else where)
        if mistake is not None:
            return mistake
    return None


def _why_not(module: Module, where: str) -> Mistake | None:
    from mlfbuild.library import OPERATOR

    if module.style == OPERATOR:
        return Mistake("operator-without-hook", reason=f"{where} holds a single operator", hint="remove the option")
    # mlfbuild executes graphs itself, also those that TVM compiled.
    if module.executor == "graph" or module.hook:
        return None
    if module.model_id:
        return Mistake(
            "archive-without-hook",
            reason=f"{where} was compiled by mlfbuild without {HOOK}",
            hint=f"compile the model file again with {HOOK}: true",
        )
    return Mistake(
        "archive-for-aot-executor",
        reason=f"{where} was exported for the AOT executor, which calls all operators in one function",
        hint="export the network for the graph executor, or compile its model file with mlfbuild",
    )
