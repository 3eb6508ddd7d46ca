"""Required libraries in a bill of materials, and the files of unpacked trees by kind.

The kinds are generated code, kernels of mlfbuild, mlfbuild's runtime, TVM's runtime, and required libraries. Only files
that a compiler or linker reads are listed; fragments, parameters and texts do not get into an image.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.c_analysis import LINKED_SUFFIXES, TEXT_SUFFIXES
from mlfbuild.core import NotFetchedError, ProjectFileError, read_bytes, sha256, shown
from mlfbuild.jobs import TargetJob
from mlfbuild.jobs.tree import DEPENDENCIES_FOLDER, Record, is_file, reachable, read_record
from mlfbuild.library import (
    FOLDER,
    Requirement,
    bundle_names,
    bundles,
    included_names,
    is_kernel_header,
    reached_headers,
)
from mlfbuild.project import Project, Provider
from mlfbuild.report.sbom.bom import Component, How
from mlfbuild.report.sbom.components import bundled_component, dependency_component, required_component
from mlfbuild.report.sbom.sbom_document import BUILD, REPAIR, Bill, Code
from mlfbuild.requirements import GitPin, default_cache, pin_of

_ASSEMBLY_SUFFIXES = frozenset({".s", ".S"})
_SUFFIXES = TEXT_SUFFIXES | LINKED_SUFFIXES | _ASSEMBLY_SUFFIXES
RUNTIME_FOLDER = "executor/runtime/"
"""Folders of mlfbuild's headers for TVM's code."""
_DEPENDENCIES = f"{FOLDER}/"
"""Folder of libraries that an archive includes; builds use those in the folder of the target."""
BUNDLED_FOLDERS = ("runtime/", "templates/")
"""Folders of TVM's runtime, in archives that include it."""


@dataclass(frozen=True)
class TreeContents:
    """Files of an unpacked tree by relative path, each kind sorted."""

    archive: str
    """SHA-256 of the archive that was unpacked."""
    code: Mapping[str, bytes]
    kernels: Mapping[str, Mapping[str, bytes]]
    """Kernel headers that the code includes, by folder and name."""
    runtime: Mapping[str, bytes]
    bundled: Mapping[str, bytes]
    damage: tuple[str, ...]
    """A line for each file that is not as it was unpacked."""


def read_tree(directory: Path) -> TreeContents | None:
    """Return the files of the tree ``directory`` as they are now; ``None`` if there is no tree.

    Raises ``ConflictError`` and ``InputFileError`` as ``read_record`` does.
    """
    record = read_record(directory)
    if record is None:
        return None
    files, damage = _files_of(directory, record, _SUFFIXES)
    if not record.complete:
        damage.insert(0, f"{directory}: the tree is incomplete")
    headers = [path for path in files if is_kernel_header(path.removeprefix("codegen/"))]
    kinds: dict[str, dict[str, bytes]] = {"code": {}, "runtime": {}, "bundled": {}}
    # Kernels are listed by folder; libraries of the target are in a tree of their own.
    for path in files.keys() - {*headers}:
        if not path.startswith(_DEPENDENCIES):
            kinds[_kind(path)][path] = files[path]
    kernels: dict[str, dict[str, bytes]] = {}
    for path in headers:
        folder, name = path.split("/")[-2:]
        kernels.setdefault(folder, {})[name] = files[path]
    ordered = {kind: {path: held[path] for path in sorted(held)} for kind, held in kinds.items()}
    included = {folder: reached(ordered["code"], folder, held) for folder, held in sorted(kernels.items())}
    return TreeContents(
        archive=record.archive,
        kernels={folder: held for folder, held in included.items() if held},
        damage=tuple(damage),
        **ordered,
    )


def read_dependencies(directory: Path) -> tuple[dict[str, dict[str, bytes]], tuple[str, ...]]:
    """Return the files of each library in ``directory``, and a line for each damage.

    ``directory`` is the folder ``dependencies`` of a target. Files are those that models require and licences, by path
    in the library's folder. Raises as ``read_tree``.
    """
    record = read_record(directory)
    if record is None:
        return {}, ()
    files, damage = _files_of(directory, record)
    libraries: dict[str, dict[str, bytes]] = {}
    for path, data in files.items():
        name, inside, rest = path.partition("/")
        if inside:
            libraries.setdefault(name, {})[rest] = data
    return libraries, tuple(damage)


def _files_of(
    directory: Path, record: Record, suffixes: frozenset[str] | None = None
) -> tuple[dict[str, bytes], list[str]]:
    """Return the recorded files with one of ``suffixes`` as they are now, by path, and a line for each change."""
    files: dict[str, bytes] = {}
    damage: list[str] = []
    # Sorted, so that messages and documents have the same order on every file system.
    for path in sorted(path for path in record.files if suffixes is None or Path(path).suffix in suffixes):
        # A link could lead to any file of this machine, whose hash would then be in a document for others.
        if not (reachable(directory, path) and is_file(directory / path)):
            damage.append(f"{directory / path}: is missing")
            continue
        files[path] = read_bytes(directory / path, "file of the tree")
        if sha256(files[path]) != record.files[path].sha256:
            damage.append(f"{directory / path}: was edited")
    return files, damage


def _kind(path: str) -> str:
    if path.startswith(RUNTIME_FOLDER):
        return "runtime"
    return "bundled" if path.startswith(BUNDLED_FOLDERS) else "code"


def reached(code: Mapping[str, bytes], folder: str, headers: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the kernel ``headers`` in ``folder`` that ``code`` includes, directly or indirectly, by name.

    Older archives have all kernel headers, and the bill lists only those that get into an image.
    """
    names = (name for text in code.values() for name in included_names(text))
    # Names are compared below the folder, because kernels include each other by their plain names.
    return reached_headers([name[len(folder) + 1 :] for name in names if name.startswith(f"{folder}/")], headers)


def add_declared(bill: Bill, project: Project) -> None:
    """Add all providers of ``project``: before a build, it is not known which of them are required."""
    for provider in project.dependencies.values():
        bill.add(_provided(bill, provider))


def add_dependencies(bill: Bill, project: Project, target: TargetJob, codes: Iterable[Code]) -> None:
    """Add the libraries that ``codes``, those of ``target``, require, with the files that are built for it.

    Raises ``InputFileError`` and ``ConflictError`` for files that cannot be read.
    """
    # As built, and not as the project requires them now: a bill describes what is there.
    files, damage = read_dependencies(target.tree / DEPENDENCIES_FOLDER)
    for line in damage:
        bill.note(f"{line}; {REPAIR}")
    for code in codes:
        for requirement in code.requirements:
            component = _component(bill, project, code, requirement, files.get(requirement.name))
            # A package belongs to the firmware's own build, so its files are not known here.
            if not component.files and component.properties.get("provided-by", "package") != "package":
                bill.note(
                    f"{requirement.name} for {target.name}: is not built, so its files are not in the bill; {BUILD}"
                )
            bill.relate(code.ref, How.DEPENDS_ON, bill.add(component))


def _component(
    bill: Bill, project: Project, code: Code, requirement: Requirement, files: dict[str, bytes] | None
) -> Component:
    """Return the library for ``requirement`` of ``code``: that of the project's provider, else the bundled one."""
    provider = project.dependencies.get(requirement.name)
    # As in builds: what the project provides is used instead of what the archive bundles.
    if provider is not None:
        return _provided(bill, provider, files)
    if requirement.name in bundle_names(code.library):
        return bundled_component(bundles(code.library, str(code.job.archive))[requirement.name], files)
    bill.note(
        f"{code.job.title}: requires {shown(requirement.title)}, which the project does not provide; add it to "
        "`dependencies`"
    )
    return required_component(requirement)


def _provided(bill: Bill, provider: Provider, files: dict[str, bytes] | None = None) -> Component:
    pin = _pin(bill, provider)
    return dependency_component(provider, pin.commit if pin else "", pin.tree if pin else "", files)


def _pin(bill: Bill, provider: Provider) -> GitPin | None:
    """Return the commit of a repository; without one, a tag may turn out to be any commit."""
    if provider.kind != "git":
        return None
    try:
        return pin_of(provider, default_cache())
    except (NotFetchedError, ProjectFileError) as error:  # the latter if it is not locked
        bill.note(str(error))
        return None
