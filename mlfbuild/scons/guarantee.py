"""No global symbol of one model in another one, for programs that SCons links itself."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from SCons.Action import Action

from mlfbuild.scons.actions import action

_checking: list[Any] = []
"""The builders that compare."""
_owners: dict[Any, str] = {}
"""What messages call the model of a library, by the library's node."""


def remember_owner(library: Any, owner: str) -> None:
    """Let ``library`` count as code of the model ``owner``."""
    _owners[library] = owner


def check_programs(env: Any) -> None:
    """Let ``Program`` of ``env`` compare the models in ``LIBS`` and among its sources before it links.

    Whoever links has the libraries at hand, and only then they are read. A clash fails the build with both models and
    the symbol; nothing is linked.
    """
    program = env["BUILDERS"].get("Program")
    if program is None or any(program is builder for builder in _checking):
        return
    checking = copy.copy(program)
    checking.action = Action([_CHECK, program.action])
    _checking.append(checking)
    env.Append(BUILDERS={"Program": checking})


def _check(target: list[Any], source: list[Any], env: Any) -> None:
    from mlfbuild.build import (  # reads objects: builds that link nothing need none of it
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
