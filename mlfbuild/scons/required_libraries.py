"""Build the libraries that models require, for firmware that is linked with SCons' own ``Program``."""

from __future__ import annotations

import os
from typing import Any

from mlfbuild.library import ResolvedLibrary
from mlfbuild.scons.trees import TreeNodes

_made: dict[str, Any] = {}
"""The library's node by its path."""


def dependency_dirs(tree: TreeNodes, source: ResolvedLibrary) -> list[Any]:
    """Return the include folders of ``source``, whose files are copied to the folder of the target."""
    folder = _copies(tree, source)
    return [folder.Dir(path) for path in source.include_dirs]


def dependency_library(env: Any, folder: Any, tree: TreeNodes, source: ResolvedLibrary, theirs: list[Any]) -> Any:
    """Return the node of the static library of ``source`` in ``folder``, one for all models of ``env``.

    It is compiled with the flags that ``env`` has when the build runs, with its own options, and without warnings,
    because users cannot change its code. ``theirs`` are the include folders of the firmware.
    """
    if not source.sources:
        return []
    target = folder.File(env.subst(f"${{LIBPREFIX}}mlf_dep_{source.name}$LIBSUFFIX"))
    key = target.get_abspath()
    if key not in _made:
        copies = _copies(tree, source)
        changes = {
            "CPPPATH": [*dependency_dirs(tree, source), *theirs],
            "MLFDEPENDENCYFLAGS": _options(env, source),
            "_CCCOMCOM": f"{env.get('_CCCOMCOM', '')} $MLFDEPENDENCYFLAGS",  # after all flags of env
        }
        objects = [
            env.StaticObject(_object(env, folder, source, path), copies.File(path), **changes)
            for path in source.sources
        ]
        _made[key] = env.StaticLibrary(target, objects)
    return _made[key]


def _copies(tree: TreeNodes, source: ResolvedLibrary) -> Any:
    return tree.folder.up().Dir("dependencies").Dir(source.name)


def _object(env: Any, folder: Any, source: ResolvedLibrary, path: str) -> Any:
    stem = os.path.splitext(path)[0]  # noqa: PTH122 - a path with slashes on every machine
    return folder.Dir(f"dep_{source.name}").File(env.subst(f"${{OBJPREFIX}}{stem.replace('/', '-')}$OBJSUFFIX"))


def _options(env: Any, source: ResolvedLibrary) -> list[str]:
    compiler = os.path.basename(env.subst("$CC"))  # noqa: PTH119 - flags may follow it
    quiet = (
        ["-w", "-ffunction-sections", "-fdata-sections"]
        if "gcc" in compiler or "clang" in compiler or compiler == "cc"
        else []
    )
    options = [option.replace("$", "$$") for option in source.compile_options]
    return [*options, *quiet]
