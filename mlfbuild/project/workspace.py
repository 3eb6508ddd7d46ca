"""Workspaces: a project file that lists others, each of which can also be built alone.

    mlfbuild: 1
    include:
      sensor: sensors/mlfbuild.yml
      gateway: gateway/mlfbuild.yml

Projects of a workspace share nothing but the file that lists them: models of the same name are different ones, and each
project keeps its own folder ``build``. A command for a workspace runs for each project in turn, and ``--target
sensor/m4`` chooses one. An included file may be a workspace itself; its projects are ``sensor/<prefix>``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mlfbuild.core import Mistake, ProjectFileError, real_place
from mlfbuild.project.problems import in_file_order
from mlfbuild.project.specification import INCLUDE, Workspace

_MENTIONED = re.compile(rb"""\binclude["']?\s*:""")
"""A key ``include``, wherever it is: other files are not parsed twice. ``include-dirs`` is another key."""


def workspace_projects(path: Path) -> dict[str, Path]:
    """Return prefix -> project file of the workspace ``path``; empty if ``path`` is a project, or cannot be read.

    Raises ``ProjectFileError`` for mistakes in the file and in those that it includes, and for a file that includes
    itself. The projects are not read.
    """
    return dict(_projects(path, "", ()))


def _projects(path: Path, prefix: str, outer: tuple[Path, ...]) -> Iterator[tuple[str, Path]]:
    try:
        mentioned = _MENTIONED.search(path.read_bytes())
    except OSError:
        mentioned = None  # the reader of projects reports it
    if mentioned is None:
        return
    # These import yaml and pydantic, which most project files need only once.
    from mlfbuild.project.document import read_document
    from mlfbuild.project.validate import validate

    document = read_document(path)
    if INCLUDE not in document.mapping():
        return
    if real_place(path) in outer:
        reason = f"the file includes itself, through {outer[-1]}"
        document.add((INCLUDE,), Mistake("include-cycle", reason=reason, hint="remove one of the entries"))
    found = validate(document, path.parent, Workspace)
    if found is None or document.problems:
        raise ProjectFileError(in_file_order(path, document.problems))
    for name, file in found.include.items():
        if not file.is_file():
            document.add((INCLUDE, name), Mistake("no-project-file", reason=f"{file}: no such file"))
            continue
        inner = dict(_projects(file, f"{prefix}{name}/", (*outer, real_place(path))))
        yield from (inner or {f"{prefix}{name}": file}).items()
    if document.problems:
        raise ProjectFileError(in_file_order(path, document.problems))
