"""Read a project file and check it: YAML -> document -> keys -> Project."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mlfbuild.core import Mistake, ProjectFileError
from mlfbuild.exploration import exploration_path
from mlfbuild.library import short_name
from mlfbuild.project.addresses import is_local_path
from mlfbuild.project.memories import with_derived
from mlfbuild.project.memory_script import MemoryScript, read_memory_scripts
from mlfbuild.project.problems import KeyPath, Position, Problem, dotted, in_file_order
from mlfbuild.project.provider import Provider
from mlfbuild.project.sharing import shared_workspaces
from mlfbuild.project.sources import SOURCES, source_suffix
from mlfbuild.project.specification import ALL, INCLUDE, VECTORS_FOLDER, FirmwareSpec, ModelSpec, Project, TargetSpec

if TYPE_CHECKING:
    from mlfbuild.project.document import Document

_Entry = TypeVar("_Entry", TargetSpec, ModelSpec, FirmwareSpec)


Found = Iterable[tuple[KeyPath, Mistake]]
"""Mistakes at keys of a project file."""
Changes = Mapping[KeyPath, object]
"""Values of a project file by the way to them; ``None`` removes a key."""


def load_project(
    path: Path, beside: Callable[[Project], Found] | None = None, changes: Changes | None = None
) -> Project:
    """Read and check the project file at ``path``; files that it names are not read.

    ``beside`` looks for further mistakes of each target, model and firmware alone, such as missing files. If the file
    has mistakes, it gets a project of the entries that have none, so that one run reports all mistakes. ``changes`` are
    values that replace those of the file.

    Raises ``ProjectFileError`` with every mistake in it, in file order.
    """
    # These import yaml and pydantic, which commands without a project file do not need.
    from mlfbuild.project.document import read_document
    from mlfbuild.project.known_devices import complete_targets
    from mlfbuild.project.references import check_references
    from mlfbuild.project.short_forms import write_in_full
    from mlfbuild.project.validate import newer_version, validate

    document = read_document(path)
    # Before any key is checked: those of a newer format would all be reported as mistakes.
    newer = newer_version(document)
    if newer is not None:
        problem = Problem(document.value_position(("mlfbuild",)), ("mlfbuild",), newer)
        raise ProjectFileError([problem.in_file(path)])
    if INCLUDE in document.mapping():
        files = [str(file) for file in document.mapping(INCLUDE).values()]
        reason = "the file is a workspace, and this command is for one project"
        hint = f"choose one with -f, such as -f {path.parent / files[0]}" if files else "add a project"
        document.report((INCLUDE,), "workspace-not-project", reason, hint, at_key=True)
        raise ProjectFileError(in_file_order(path, document.problems))
    watched = write_in_full(document, path.parent)
    for place, value in (changes or {}).items():
        document.change(place, value)
    complete_targets(document, path.parent)
    scripts = read_memory_scripts(document, path.parent)
    project = validate(document, path.parent, Project)
    check_references(document, scripts)
    if project is None or document.problems:
        refused = {problem.path for problem in document.problems}
        for place, mistake in beside(_entries(document, path)) if beside else ():
            if place not in refused:  # such as a file of an unsupported format, which may also be missing
                document.add(place, mistake)
        raise ProjectFileError(in_file_order(path, document.problems))
    # A new exploration may reach a goal with other settings.
    goals = (exploration_path(path),) if any(model.goal for model in project.models.values()) else ()
    return replace(_completed(project, path, document, scripts), watched=(*watched, *goals))


def _entries(document: Document, path: Path) -> Project:
    """Return a project of those targets, models and firmware of ``document`` that are valid one by one."""
    from pydantic import TypeAdapter, ValidationError

    def valid(section: str, kind: type[_Entry]) -> Iterator[tuple[str, _Entry]]:
        adapter = TypeAdapter(kind)
        for name, entry in document.entries(section):
            with contextlib.suppress(ValidationError):
                yield name, replace(adapter.validate_python(entry, context=path.parent), name=name)

    models = {
        name: replace(model, compiler=model.compiler or SOURCES.get(source_suffix(model.source.name), "command"))
        for name, model in valid("models", ModelSpec)
    }
    targets, firmware = dict(valid("targets", TargetSpec)), dict(valid("firmware", FirmwareSpec))
    return Project(path, 1, targets, models, firmware=firmware)


def _completed(project: Project, path: Path, document: Document, scripts: Mapping[str, MemoryScript]) -> Project:
    """Return ``project`` as read with all derived fields, and with the defaults that depend on other keys."""
    shared = shared_workspaces(project.share_workspace, project.concurrent)
    return replace(
        project,
        path=path,
        targets={
            name: with_derived(
                replace(target, name=name, memory_script=scripts.get(name)),
                runner_memory_given=("targets", name, "runner", "memory") in document.values,
            )
            for name, target in project.targets.items()
        },
        models={
            name: _model(name, model, project, path.parent, shared.get(name, 0))
            for name, model in project.models.items()
        },
        firmware={name: _firmware(name, firmware, project) for name, firmware in project.firmware.items()},
        dependencies={
            short_name(name): _provider(name, provider, path, document)
            for name, provider in project.dependencies.items()
        },
        positions=_positions(document),
    )


def _positions(document: Document) -> dict[KeyPath, Position]:
    """Return the position of each value; those of dependencies also by the short name, which later checks use."""
    found = dict(document.values)
    for path, position in document.values.items():
        if path[:1] == ("dependencies",) and len(path) > 1:
            found.setdefault((path[0], short_name(str(path[1])), *path[2:]), position)
    return found


def _model(name: str, model: ModelSpec, project: Project, root: Path, shared: int) -> ModelSpec:
    found = root / VECTORS_FOLDER / f"{name}.npz"
    compiler = model.compiler or SOURCES[source_suffix(model.source.name)]
    return replace(
        model,
        name=name,
        compiler=compiler,
        trust=project.trust_in(compiler),
        targets=tuple(project.targets) if model.targets is ALL else model.targets,
        vectors=model.vectors or ({"": found} if found.is_file() else {}),
        placement=replace(model.placement, shares_workspace=shared),
        folder=root,
    )


def _firmware(name: str, firmware: FirmwareSpec, project: Project) -> FirmwareSpec:
    return replace(
        firmware,
        name=name,
        models=tuple(project.models) if firmware.models is ALL else firmware.models,
        targets=tuple(project.targets) if firmware.targets is ALL else firmware.targets,
    )


def _provider(name: str, provider: Provider, file: Path, document: Document) -> Provider:
    way = ("dependencies", name)
    position = document.key_position(way)
    local = provider.path or (provider.git if is_local_path(provider.git) else "")
    return replace(
        provider,
        name=short_name(name),
        target=provider.target or provider.package,
        folder=file.parent / local if local else None,
        where=f"{file}:{position.line}:{position.column}: {dotted(way)}",
    )
