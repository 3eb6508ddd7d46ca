"""Find the files in a repository that ``mlfbuild init`` of another version wrote."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from mlfbuild.usecases.init.templates import CMAKE_FILE, SCHEMA_FILE, SCONS_TOOL, filled, schema_text

_SCHEMA_LINE = re.compile(r"^# yaml-language-server: *\$schema=(?!\w+:)(\S+)", re.MULTILINE)
"""The line in a project file that names a schema which is a file."""


def outdated_files(project_file: Path) -> dict[Path, str]:
    """Return the files beside ``project_file`` that another version of mlfbuild wrote, each with its present content.

    These are the JSON Schema of the project file, the tool for SCons and the file for CMake. Files that the user has
    written or changed are not among them.
    """
    return dict(_outdated(project_file.parent, _text(project_file)))


def outdated_lines(project_file: Path) -> list[str]:
    """Return a line for each of the ``outdated_files``, with the command that writes it again.

    Empty if all files are of this version, or none was written by mlfbuild. `mlfbuild check` and `mlfbuild doctor`
    print the lines.
    """
    root = project_file.parent
    command = f"mlfbuild init --update{'' if root == Path() else f' {shlex.quote(str(root))}'}"
    reason = "another version of mlfbuild wrote this file"
    return [f"{path}: {reason}; run `{command}`" for path in outdated_files(project_file)]


def _outdated(root: Path, project: str) -> Iterator[tuple[Path, str]]:
    for name in dict.fromkeys([SCHEMA_FILE, *(str(Path(name)) for name in _SCHEMA_LINE.findall(project))]):
        if _is_another_schema(_text(root / name)):
            yield root / name, schema_text()
    tool = _text(root / SCONS_TOOL)
    if "mlfbuild.scons import" in tool and "ModuleNotFoundError" not in tool:  # a traceback if mlfbuild is missing
        yield root / SCONS_TOOL, filled("scons/mlf.py.in")
    package, present = _text(root / CMAKE_FILE), filled(CMAKE_FILE)
    # Up to its first period, the text shows that mlfbuild wrote the file.
    if package.startswith(present.partition(".")[0]) and package != present:
        yield root / CMAKE_FILE, present


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _is_another_schema(text: str) -> bool:
    """Return whether ``text`` is a schema of mlfbuild, but not that of this version."""
    if not text:
        return False
    from mlfbuild.project import json_schema  # needs pydantic, which most commands do not

    try:
        found, own = json.loads(text), json_schema()
    except ValueError:
        return False
    # Values are compared, so that a formatter of JSON does not make a schema outdated.
    return isinstance(found, dict) and found.get("title") == own["title"] and found != own
