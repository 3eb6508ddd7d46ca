"""Write the server beside a project, and projects for archives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mlfbuild.archive import open_archive
from mlfbuild.core import ConflictError, holds, write_atomic
from mlfbuild.usecases.init import PROJECT_API_SERVER, InitRequest, init_project, project_api_server, staged
from mlfbuild.usecases.project_api.project_types import PROJECT_TYPES

__all__ = ["generate_project", "write_server"]


def write_server(folder: Path) -> Path:
    """Write the server to ``folder`` and return its path; nothing is written if it is there.

    Raises ``ConflictError`` if the file has another content, and ``StorageError``.
    """
    path, content = folder / PROJECT_API_SERVER, project_api_server().encode()
    if not holds(path, content):
        with staged(folder) as stage:
            write_atomic(stage / PROJECT_API_SERVER, content)
    return path


def generate_project(
    archive: Path,
    folder: Path,
    project_type: str | None,
    board: str | None,
    template: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Write a project around ``archive``, whose firmware TVM drives, to ``folder``, which must not have files yet.

    If the user's ``template`` is given, its files replace and add to those of the project type; ``settings`` are its
    variables. ``None`` selects the type or board that the archive records in its extensions, or the default. The
    project contains the archive and this server, and no path of this machine. Raises ``ConflictError`` if the folder
    has files, and as ``init_project``.
    """
    # Even hidden files count: the new project must not mix with another one.
    if folder.is_dir() and any(folder.iterdir()):
        raise ConflictError(
            "project-folder-not-empty", place=folder, reason="the folder has files", hint="choose a new folder"
        )
    # Of the request, of the archive, or the default, in this order.
    base = PROJECT_TYPES[project_type or _recorded_type(archive) or next(iter(PROJECT_TYPES))]
    if template is None:
        init_project(InitRequest(folder, base, board, archive=archive))
    else:
        request = InitRequest(folder, f"{template}/", board, archive=archive, settings=settings or {}, base=base)
        init_project(request)


def _recorded_type(archive: Path) -> str:
    found = [module.extensions.get("project_type") for module in open_archive(archive).modules]
    return next((str(each) for each in found if each in PROJECT_TYPES), "")
