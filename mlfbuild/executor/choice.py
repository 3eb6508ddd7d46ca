"""Choose what to call in an archive, by name."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.core import UsageError, listed
from mlfbuild.executor.operators import operator_functions
from mlfbuild.library import OPERATOR, Library, Module


def callable_modules(module: Module) -> tuple[Module, ...]:
    """Return what can be called of ``module``, each with inputs and outputs: itself, or an operator's functions."""
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
