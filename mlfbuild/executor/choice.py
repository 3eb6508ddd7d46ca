"""Which network or operator of an archive is called, by name."""

from __future__ import annotations

from mlfbuild.errors import UsageError
from mlfbuild.executor.executable import callable_modules
from mlfbuild.library import Library, Module
from mlfbuild.messages import listed


def chosen_module(library: Library, name: str | None, where: str) -> Module:
    """Return the network or operator ``name`` of the archive ``where``; it needs no name where there is only one.

    Raises ``UsageError`` for a name that the archive does not have, or for none where it has several.
    """
    modules = {called.name: called for module in library.modules for called in callable_modules(module)}
    if name is None and len(modules) == 1:
        return next(iter(modules.values()))
    if name is None or name not in modules:
        what = "holds several modules; choose one" if name is None else f"has no module {name!r}"
        raise UsageError(f"{where}: {what} (of {listed(list(modules))})")
    return modules[name]
