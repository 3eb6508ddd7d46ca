"""What the models of a target need beside their archives: recognised, met by the project, reduced to what is called.

Nobody waits for it twice: what code needs of a library is remembered beside the copies, under the hash of both.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from mlfbuild import archive as archives
from mlfbuild.build.jobs import CompileJob, TargetJob
from mlfbuild.build.tree import UnpackResult
from mlfbuild.build.tree.dependencies import write_dependencies
from mlfbuild.build.tree.record import RECORD
from mlfbuild.build.wanted import wishes_of
from mlfbuild.c_analysis import LINKED_SUFFIXES, TEXT_SUFFIXES
from mlfbuild.core import package_fingerprint, sha256, write_if_changed
from mlfbuild.library import Library, Module, Wish
from mlfbuild.project import Provision
from mlfbuild.requirements import Dependency, Source

__all__ = ["Dependency", "Source", "copied_files", "dependency_settings", "memory_file", "original_files",
           "original_folders", "target_dependencies", "write_target_dependencies"]  # fmt: skip


@dataclass(frozen=True)
class _Needing:
    """A module with what it needs."""

    library: Library
    """That it is in."""
    module: Module
    wishes: tuple[Wish, ...]

    @property
    def code(self) -> Iterator[bytes]:
        """What of it is compiled, included or linked."""
        suffixes = TEXT_SUFFIXES | LINKED_SUFFIXES
        return (bytes(file.content) for file in self.module.codegen if file.path.suffix in suffixes)


def target_dependencies(target: TargetJob) -> tuple[Dependency, ...]:
    """Return what the models of ``target`` need: libraries with the needed files alone.

    Archives that ``CompileJob.made_first`` must be there. Models that this build leaves alone count where the target's
    fragment has them. Raises as ``resolve`` where the project does not provide it, ``NotFetchedError`` for what is not
    on this machine, and ``InputFileError``.
    """
    found = [needing for job in _in_fragment(target) for needing in _needing(job)]
    if not found:
        return ()
    from mlfbuild.requirements import resolve  # most builds need none of it

    libraries = {wish.origin: each.library for each in found for wish in each.wishes}
    source_of = functools.partial(_source, libraries)
    dependencies = resolve([wish for each in found for wish in each.wishes], target.provisions, source_of)
    memory = _Memory(memory_file(target))
    reduced = tuple(_reduced(dependency, found, memory) for dependency in dependencies)
    memory.write()
    return reduced


def memory_file(target: TargetJob) -> Path:
    """Return the file beside the archives that remembers what their code needs of libraries."""
    folders = [job.archive.parent for job in (*target.models, *target.others)]
    return next(iter(folders), target.tree) / ".dependencies.json"


def write_target_dependencies(target: TargetJob) -> UnpackResult:
    """Put what the models of ``target`` need into its folder ``dependencies``, for builds that are configured by it.

    Raises as ``target_dependencies`` and ``write_dependencies``.
    """
    return write_dependencies(target.dependencies_folder, target_dependencies(target))


def dependency_settings(dependencies: Sequence[Dependency]) -> str:
    """Return all that decides the folder ``dependencies``, as canonical JSON without places."""
    from mlfbuild.requirements import content_hash

    entries = [
        {"name": each.name, "version": each.version, "sha256": content_hash(each)}
        if isinstance(each, Source)
        else asdict(each)
        for each in dependencies
    ]
    return json.dumps(entries, sort_keys=True)


def copied_files(dependencies: Sequence[Dependency]) -> list[str]:
    """Return what compilers read of the folder ``dependencies``, its record first; nothing where nothing is needed."""
    sources = [each for each in dependencies if isinstance(each, Source)]
    files = [f"{source.name}/{path}" for source in sources for path in source.files]
    return [RECORD, *files] if dependencies else []


def original_files(target: TargetJob, dependencies: Sequence[Dependency]) -> list[Path]:
    """Return the files that ``dependencies`` are copied from, where these are the user's own and may change."""
    return [folder / path for folder, path in _originals(target, dependencies)]


def original_folders(target: TargetJob, dependencies: Sequence[Dependency]) -> list[Path]:
    """Return the folders of ``original_files``, up to the library's own: where a file comes that code may need."""
    found = {(folder, parent) for folder, path in _originals(target, dependencies) for parent in path.parents}
    return sorted(folder / path for folder, path in found)


def _originals(target: TargetJob, dependencies: Sequence[Dependency]) -> Iterator[tuple[Path, PurePosixPath]]:
    """Yield the user's own folder and the path in it of each file that is copied from there."""
    folders = {each.name: each.folder for each in target.provisions if each.kind == "path" and each.folder is not None}
    for source in dependencies:
        if isinstance(source, Source) and source.name in folders:
            yield from ((folders[source.name], PurePosixPath(path)) for path in source.files)


def _in_fragment(target: TargetJob) -> Iterator[CompileJob]:
    """Return the jobs whose archives may need a library; those of the native compiler need none."""
    names = set(target.in_fragment())
    return (job for job in (*target.models, *target.others) if job.model in names and job.compiler != "native")


def _needing(job: CompileJob) -> Iterator[_Needing]:
    library = _library(job)
    if library is None:
        return
    for module in library.modules:
        found = wishes_of(module, job.model, job.request.source)
        if found:
            yield _Needing(library, module, found)


def _library(job: CompileJob) -> Library | None:
    """Return what the job's archive holds; one that is made from another tells what that one says itself."""
    path = job.request.source if job.compiler == "archive" else job.archive
    return archives.open_archive(path) if path.is_file() else None


def _source(libraries: Mapping[str, Library], wanted: Provision | Wish) -> Source:
    """Return the sources of a provision, or what the archive of a wish has bundled."""
    from mlfbuild.build.provided import provided_source
    from mlfbuild.requirements import bundled_source

    if isinstance(wanted, Wish):
        return bundled_source(libraries[wanted.origin], wanted, wanted.origin)
    return provided_source(wanted)


# What code needs of a library ----------------------------------------------------------------------------------------


class _Memory:
    """Parts of libraries that code needed before, by the hash of everything that decides them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = _read(path)
        self._used: dict[str, Any] = {}

    def part(self, key: str, source: Source) -> Source | None:
        """Return the part of ``source`` that is remembered for ``key``, ``None`` where none is."""
        try:
            files, include_dirs = self._known[key]
            part = _part(source, files, include_dirs)
        except (LookupError, TypeError, ValueError):  # not there, or not as this class wrote it
            return None
        self._used[key] = self._known[key]
        return part

    def keep(self, key: str, part: Source) -> None:
        """Remember ``part`` for ``key``."""
        self._used[key] = [list(part.files), list(part.include_dirs)]

    def write(self) -> None:
        """Write what was asked for since this was made, and nothing else."""
        write_if_changed(self._path, json.dumps(self._used, sort_keys=True).encode())


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}


def _part(source: Source, files: Sequence[str], include_dirs: Sequence[str]) -> Source:
    return replace(
        source,
        files={path: source.files[path] for path in files},
        sources=tuple(path for path in source.sources if path in set(files)),
        include_dirs=tuple(include_dirs),
    )


def _reduced(dependency: Dependency, found: Sequence[_Needing], memory: _Memory) -> Dependency:
    """Return ``dependency`` with what the code of ``found`` needs of it alone."""
    if not isinstance(dependency, Source):
        return dependency
    from mlfbuild.requirements import needed, needs_key  # few projects have a library to look into

    name = dependency.name
    code = [content for each in found if name in {wish.name for wish in each.wishes} for content in each.code]
    key = sha256(f"{package_fingerprint()} {needs_key(dependency, code)}".encode())
    part = memory.part(key, dependency)
    if part is None:
        part = needed(dependency, code)
        memory.keep(key, part)
    return part
