"""Fail if two models share a global symbol in a program that SCons links itself."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from SCons.Action import Action

from mlfbuild.scons.actions import action

_checking: list[Any] = []
"""The builders that compare symbols."""
_owners: dict[Any, str] = {}
"""Name of the model in messages, by the library's node."""


def remember_owner(library: Any, owner: str) -> None:
    """Count ``library`` as code of the model ``owner``."""
    _owners[library] = owner


def check_programs(env: Any) -> None:
    """Let ``Program`` of ``env`` compare the models in ``LIBS`` and among its sources before it links.

    If two share a symbol, the build fails with their names and the symbol, and nothing is linked. The libraries are
    read only if the program is linked again.
    """
    program = env["BUILDERS"].get("Program")
    if program is None or any(program is builder for builder in _checking):
        return
    checking = copy.copy(program)
    checking.action = Action([_CHECK, program.action])
    _checking.append(checking)
    env.Append(BUILDERS={"Program": checking})


def _check(target: list[Any], source: list[Any], env: Any) -> None:
    from mlfbuild.build import (  # reads objects: not needed if nothing is linked
        COMPARED,
        check_models,
    )

    compiled: dict[str, list[Path]] = {}
    firmware = []
    for node in dict.fromkeys(env.Flatten([source, env.get("LIBS", [])])):
        if isinstance(node, str):
            continue
        path = Path(node.get_abspath())
        if node in _owners:
            compiled.setdefault(_owners[node], []).append(path)
        elif path.suffix in COMPARED:
            firmware.append(path)
    check_models(compiled, str(target[0]), firmware)


_CHECK = action(_check, None)
