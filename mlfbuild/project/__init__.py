"""mlfbuild.yml -> Project: every check and every line number.

    text -> nodes -> document -> keys -> Project

``nodes`` composes YAML and keeps positions; ``document`` turns nodes into plain values and refuses what YAML's
versions read differently (``scalars``); ``keys`` declares every key once, with the ``rules`` for texts, and
``validate`` retells pydantic's findings; ``references`` checks what needs two values. All of them add to one list of
problems, which is shown whole and in file order:

    mlfbuild.yml:4:16: targets.m4.cpu: unknown cpu "cortex-m44" (did you mean "cortex-m4"?)
    mlfbuild.yml:12:5: models.kws.optoins: unknown key (did you mean "options"?)

Words: a *path* is the way to a value (``("models", "kws", "targets", 0)``, shown as ``models.kws.targets[0]``), a
*position* is its line and column, a *problem* is a position, a path and a reason. pydantic and yaml are imported when
a project file is read, not before: verbs that need none start quickly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mlfbuild.project.placement import Placement
from mlfbuild.project.problems import KeyPath, suggestion
from mlfbuild.project.types import (
    Budget,
    BudgetFile,
    FirmwareSpec,
    ModelSpec,
    OptionValue,
    Project,
    Provision,
    Target,
)

__all__ = [
    "Budget",
    "BudgetFile",
    "FirmwareSpec",
    "KeyPath",
    "ModelSpec",
    "OptionValue",
    "Placement",
    "Project",
    "Provision",
    "Target",
    "json_schema",
    "load_project",
    "suggestion",
]


def load_project(path: Path) -> Project:
    """Read and check the project file at ``path``.

    Raises ``ProjectFileError`` with every mistake there is, one line each, in file order. Files that the project names
    are not looked at.
    """
    from mlfbuild.project.reader import read_project

    return read_project(path)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the project file, for editors."""
    from mlfbuild.project import keys

    return keys.json_schema()
