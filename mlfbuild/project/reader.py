"""A project file, read and checked: YAML -> document -> keys -> Project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import ProjectFileError
from mlfbuild.project.addresses import is_local_path
from mlfbuild.project.document import Document, read_document
from mlfbuild.project.names import short_name
from mlfbuild.project.placement import Placement
from mlfbuild.project.problems import KeyPath, Position, Problem, dotted
from mlfbuild.project.program import Program
from mlfbuild.project.provisions import KINDS
from mlfbuild.project.references import check_references
from mlfbuild.project.rules import EXTERNAL_COMPILERS
from mlfbuild.project.sources import SOURCES, source_suffix
from mlfbuild.project.types import Budget, BudgetFile, FirmwareSpec, ModelSpec, Project, Provider, Target
from mlfbuild.project.validate import newer_version, validate

if TYPE_CHECKING:
    from mlfbuild.project.keys import (
        BudgetKeys,
        DependencyKeys,
        FirmwareKeys,
        ModelKeys,
        PlacementKeys,
        ProjectKeys,
        TargetKeys,
    )


def load_project(path: Path) -> Project:
    """Read and check the project file at ``path``.

    Raises ``ProjectFileError`` with every mistake in it, in file order. Files that the project names are not read.
    """
    document = read_document(path)
    newer = newer_version(document)
    if newer:
        raise _failure(path, [Problem(document.value_position(("mlfbuild",)), ("mlfbuild",), newer)])
    keys = validate(document)
    check_references(document)
    if keys is None or document.problems:
        raise _failure(path, document.problems)
    return _project(path, keys, document)


def _failure(path: Path, problems: list[Problem]) -> ProjectFileError:
    return ProjectFileError([f"{path}:{problem}" for problem in sorted(problems, key=lambda p: p.position)])


def _project(path: Path, keys: ProjectKeys, document: Document) -> Project:
    root = path.parent
    return Project(
        path=path,
        root=root,
        targets={name: _target(name, entry, root) for name, entry in keys.targets.items()},
        models={name: _model(name, entry, root, keys) for name, entry in keys.models.items()},
        firmware={name: _firmware(name, entry, root, keys) for name, entry in keys.firmware.items()},
        budget_file=_budget_file(keys, root),
        dependencies={
            short_name(name): _provision(name, entry, path, document) for name, entry in keys.dependencies.items()
        },
        positions=_positions(document),
    )


def _positions(document: Document) -> dict[KeyPath, Position]:
    """Return where each value is; those of dependencies by the short name, too, which findings after reading know."""
    found = dict(document.values)
    for path, position in document.values.items():
        if path[:1] == ("dependencies",) and len(path) > 1:
            found.setdefault((path[0], short_name(str(path[1])), *path[2:]), position)
    return found


def _budget_file(keys: ProjectKeys, root: Path) -> BudgetFile | None:
    if keys.budget_file is None:
        return None
    path = root / keys.budget_file
    return BudgetFile(path) if keys.budget_growth is None else BudgetFile(path, keys.budget_growth)


def _target(name: str, keys: TargetKeys, root: Path) -> Target:
    return Target(name, keys.cpu, keys.board, _joined(root, keys.toolchain), keys.c_compiler, keys.regions)


def _model(name: str, keys: ModelKeys, root: Path, project: ProjectKeys) -> ModelSpec:
    return ModelSpec(
        name=name,
        source=root / keys.source,
        compiler=keys.compiler or SOURCES[source_suffix(keys.source)],
        executor=keys.executor,
        targets=tuple(keys.targets or project.targets),
        options=dict(keys.options),
        vectors={module: root / path for module, path in _by_module(keys.vectors).items()},
        placement=_placement(keys.placement, shares_workspace=name in project.share_workspace),
        program=_program(keys, root) if keys.compiler in EXTERNAL_COMPILERS else None,
        budget=_budget(keys.budget),
        license=keys.license or "",
    )


def _program(keys: ModelKeys, root: Path) -> Program:
    return Program(root, tuple(keys.command or ()), keys.python, tuple(keys.inputs or ()))


def _firmware(name: str, keys: FirmwareKeys, root: Path, project: ProjectKeys) -> FirmwareSpec:
    return FirmwareSpec(
        name=name,
        models=tuple(project.models if keys.models is None else keys.models),
        targets=tuple(keys.targets or project.targets),
        sources=tuple(root / source for source in keys.sources or ()),
        include_dirs=tuple(root / folder for folder in keys.include_dirs),
        cmake=_joined(root, keys.cmake),
        params_binary=keys.params_binary,
        budget=_budget(keys.budget),
    )


def _provision(name: str, keys: DependencyKeys, file: Path, document: Document) -> Provider:
    kind, place = next((kind, place) for kind in KINDS if (place := getattr(keys, kind)) is not None)
    way = ("dependencies", name)
    position = document.key_position(way)
    local = kind == "path" or (kind == "git" and is_local_path(place))
    return Provider(
        name=short_name(name),
        kind=kind,
        place=place,
        path=file.parent / place if local else None,
        version=keys.version or "",
        sha256=(keys.sha256 or "").lower(),
        target=keys.target or keys.package or "",
        sources=tuple(keys.sources or ()),
        include_dirs=tuple(keys.include_dirs or ()),
        license=keys.license or "",
        compile_options=tuple(keys.compile_options or ()),
        public_headers=keys.public_headers,
        bundle=keys.bundle,
        where=f"{file}:{position.line}:{position.column}: {dotted(way)}",
    )


def _budget(keys: BudgetKeys | None) -> Budget:
    return Budget() if keys is None else Budget(**dict(keys))


def _placement(keys: PlacementKeys | None, *, shares_workspace: bool) -> Placement:
    if keys is None:
        return Placement(shares_workspace=shares_workspace)
    memory = {"workspace": keys.workspace, "state": keys.state}
    if keys.params is None or isinstance(keys.params, str):
        return Placement(params=keys.params, **memory, shares_workspace=shares_workspace)
    return Placement(**dict(keys.params), **memory, shares_workspace=shares_workspace)


def _by_module(vectors: str | dict[str, str] | None) -> dict[str, str]:
    if isinstance(vectors, dict):
        return vectors
    return {} if vectors is None else {"": vectors}


def _joined(root: Path, path: str | None) -> Path | None:
    return None if path is None else root / path
