"""The option ``hook`` for what somebody else compiled: which networks have seams that firmware can come between."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mlfbuild.core import UsageError

if TYPE_CHECKING:
    from mlfbuild.library import Library, Module

HOOK = "hook"
"""The option's name."""


def hooked(library: Library, model: str, where: str) -> Library:
    """Return ``library`` with seams: a graph's executor, which mlfbuild writes, asks before each call.

    ``model`` is the model's name, ``where`` names its archive. Raises ``UsageError`` where there are none.
    """
    reason = why_no_hook(library, where)
    if reason is not None:
        raise UsageError(f"{model}: options.{HOOK}: {reason}")
    return replace(library, modules=tuple(replace(module, hook=True) for module in library.modules))


def why_no_hook(library: Library, where: str) -> str | None:
    """Return why a run of a module of ``library`` cannot be hooked, and what to do; ``None`` where all can."""
    several = len(library.modules) > 1
    for module in library.modules:
        reason = _why_not(module)
        if reason is not None:
            return f"{f'module {module.name} of {where}' if several else where} {reason}"
    return None


def _why_not(module: Module) -> str | None:
    from mlfbuild.library import OPERATOR

    if module.style == OPERATOR:
        return "holds a single operator, which nothing can come between; remove the option"
    if module.executor == "graph" or module.hook:
        return None
    if module.model_id:
        return f"was compiled by mlfbuild without {HOOK}; compile the model file again with {HOOK}: true"
    return (
        "was exported for the AOT executor, whose one function calls all operators and leaves no seam between them; "
        "export the network for the graph executor, or compile its model file with mlfbuild"
    )
