"""Put explored settings into the project file, whose comments and other lines stay, and into the lock file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mlfbuild.core import UsageError, read_bytes, require_extra
from mlfbuild.exploration import (
    Exploration,
    ExploredPoint,
    Setting,
    exploration_path,
    read_explorations,
    setting_text,
    write_explorations,
)
from mlfbuild.jobs import Progress, changes_of, explored_inputs, load, target_jobs
from mlfbuild.project import Changes, Project, load_project
from mlfbuild.requirements import lock_path
from mlfbuild.usecases.add.adding import describes, write_project_text
from mlfbuild.usecases.lock.locking import lock_project


def write_settings(
    project: Project,
    found: Exploration,
    point: ExploredPoint,
    *,
    offline: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Path]:
    """Write the settings of ``point`` into the project file and, if there is one, the lock file; return both.

    ``project`` was loaded without the changes of its goals. Raises ``ToolNotFoundError`` without ruamel.yaml,
    ``UsageError`` with the lines to write if the text cannot be changed without other changes, and as ``lock_project``.
    """
    write_values(project, changes_of(found.model, point.settings), _by_hand(found.model, point.settings))
    _renew_record(project.path, found, point)
    return [project.path, *renew_lock(project, found.model, offline=offline, jobs=jobs, progress=progress)]


def write_values(project: Project, changes: Changes, by_hand: str) -> None:
    """Write ``changes`` into the project file, whose other lines and comments stay.

    ``by_hand`` are the lines in words. Raises ``ToolNotFoundError`` without ruamel.yaml, and ``UsageError`` with the
    lines to write if the text cannot be changed without other changes.
    """
    require_extra("edit", project.path, "editing a project file")
    from mlfbuild.usecases.add.project_text import with_values

    text = read_bytes(project.path, "project file").decode()
    changed = with_values(text, {tuple(map(str, way)): value for way, value in changes.items()})
    if changed is None or not _is_as_wanted(project.path, changed, changes):
        raise UsageError(
            "project-file-not-editable",
            place=project.path,
            reason="the settings cannot be written without changing other lines",
            hint=f"write them by hand: {by_hand}",
        )
    write_project_text(project.path, changed)


def renew_lock(
    project: Project, model: str, *, offline: bool = False, jobs: int = 1, progress: Progress | None = None
) -> list[Path]:
    """Lock ``model`` again after its settings changed, if the project has a lock file, and return that file.

    Raises as ``lock_project``.
    """
    if not lock_path(project.path).is_file():
        return []
    return [lock_project(load(project.path), models=[model], offline=offline, jobs=jobs, progress=progress).path]


def _is_as_wanted(path: Path, text: str, changes: Changes) -> bool:
    """Return whether ``text`` is the project file with ``changes`` and without any other."""
    return describes(path, text, lambda now: replace(now, path=path) == load_project(path, changes=changes))


def _by_hand(model: str, settings: Mapping[str, Setting]) -> str:
    lines = (f"{'.'.join(map(str, way))}: {setting_text(value)}" for way, value in _written(model, settings))
    return ", ".join(lines)


def _written(model: str, settings: Mapping[str, Setting]) -> list[tuple[tuple[object, ...], Setting]]:
    return [(way, settings[key]) for key, way in zip(settings, changes_of(model, settings), strict=True)]


def _renew_record(path: Path, found: Exploration, point: ExploredPoint) -> None:
    """Record that the points are changes of the project file as it is now: they set every explored key."""
    project = load(path, changes={})
    jobs = target_jobs(project, [*found.made_of], [found.model])
    made_of = {target.name: explored_inputs(target, target.models[0]) for target in jobs}
    points = tuple(replace(each, current=each is point) for each in found.points)
    record = exploration_path(path)
    now = replace(found, made_of=made_of, points=points)
    write_explorations(record, {**read_explorations(record), found.model: now})
