"""Find the external libraries that the models of a target require, and the user's files that they come from.

With ``bundle: true``, a build adds libraries to an archive, whose key then depends on them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from mlfbuild import archive as archives
from mlfbuild.compilers import compiler_called
from mlfbuild.core import MlfError, package_fingerprint, sha256
from mlfbuild.jobs.model_job import CompileJob, TargetJob
from mlfbuild.jobs.tree import RECORD, UnpackResult, write_dependencies
from mlfbuild.library import Library, Requirement, ResolvedLibrary
from mlfbuild.project import Provider


def with_bundles(job: CompileJob, library: Library) -> Library:
    """Return ``library`` with the external libraries that it requires and the project bundles.

    Raises as ``resolve``, ``bundled`` and ``provided_library``.
    """
    names = {provider.name for provider in job.bundles}
    found = [requirement for requirement in _requirements(job, library) if requirement.name in names]
    if not found:
        return library
    from mlfbuild.requirements import bundled, resolve  # few projects bundle anything

    return bundled(library, {each.name: each for each in resolve(found, job.bundles, _provided)})


def bundle_key(job: CompileJob) -> str:
    """Return the hash of the libraries that the job's archive may contain, empty if there are none.

    If the archive is made from another archive, its requirements are known before; otherwise all libraries count.
    Raises as ``provided_library``.
    """
    names = _required_names(job)
    providers = [each for each in job.bundles if each.name in names]
    if not providers:
        return ""
    from mlfbuild.requirements import content_hash

    hashes = [f"{each.name} {content_hash(_provided(each))}" for each in providers]
    # How a library is bundled depends on mlfbuild itself.
    return sha256("\n".join([package_fingerprint(), *sorted(hashes)]).encode())


def _required_names(job: CompileJob) -> set[str]:
    # The libraries of another compiler are known only after it has run, so the key contains every library that it could
    # require. An edit of one that it does not need makes the archive again, which costs time but is never wrong.
    if job.compiler != "archive" or not job.bundles:
        return {provider.name for provider in job.bundles}
    try:
        library = compiler_called(job.compiler).compile(job.request)
    except MlfError:  # compiling reports it
        return set()
    return {requirement.name for requirement in _requirements(job, library)}


def _requirements(job: CompileJob, library: Library) -> Iterator[Requirement]:
    from mlfbuild.requirements import model_requirements

    for module in library.modules:
        yield from model_requirements(module, job.model, job.request.source)


def _provided(wanted: Provider | Requirement) -> ResolvedLibrary:
    from mlfbuild.requirements import provided_library

    assert isinstance(wanted, Provider)  # all requirements here have a provider
    return provided_library(wanted)


def target_dependencies(target: TargetJob) -> tuple[ResolvedLibrary, ...]:
    """Return the libraries that the models of ``target`` require.

    Archives of ``CompileJob.made_first`` must exist. Models that this build does not make count if they are in the
    target's fragment. Raises as ``resolve`` if the project does not provide a library, ``NotFetchedError`` for files
    that are not on this machine, and ``InputFileError``.
    """
    found = {requirement: library for job in _in_fragment(target) for requirement, library in _required(job)}
    if not found:
        return ()
    from mlfbuild.requirements import resolve  # most builds require nothing

    by_origin = {requirement.origin: library for requirement, library in found.items()}
    return resolve(found, target.providers, functools.partial(_library, by_origin))


def write_target_dependencies(target: TargetJob) -> UnpackResult:
    """Write the libraries that the models of ``target`` require into its folder ``dependencies``.

    Raises as ``target_dependencies`` and ``write_dependencies``.
    """
    return write_dependencies(target.dependencies_folder, target_dependencies(target))


def dependency_settings(dependencies: Sequence[ResolvedLibrary]) -> str:
    """Return everything that determines the folder ``dependencies``, as canonical JSON without absolute paths."""
    from mlfbuild.requirements import content_hash

    entries = [{"name": each.name, "version": each.version, "sha256": content_hash(each)} for each in dependencies]
    return json.dumps(entries, sort_keys=True)


def copied_files(dependencies: Sequence[ResolvedLibrary]) -> list[str]:
    """Return the files of the folder ``dependencies`` that compilers read, its record first; none without libraries."""
    files = [f"{library.name}/{path}" for library in dependencies for path in library.files]
    return [RECORD, *files] if dependencies else []


def original_files(target: TargetJob, dependencies: Sequence[ResolvedLibrary]) -> list[Path]:
    """Return the user's own files that ``dependencies`` are copied from, which may change."""
    return [folder / path for folder, path in _originals(target, dependencies)]


def original_folders(target: TargetJob, dependencies: Sequence[ResolvedLibrary]) -> list[Path]:
    """Return the folders of ``original_files`` up to the library's own folder: new files may appear there."""
    found = {(folder, parent) for folder, path in _originals(target, dependencies) for parent in path.parents}
    return sorted(folder / path for folder, path in found)


def _originals(target: TargetJob, dependencies: Sequence[ResolvedLibrary]) -> Iterator[tuple[Path, PurePosixPath]]:
    """Yield the user's folder, and the path in it, of each file that is copied from there."""
    folders = {each.name: each.folder for each in target.providers if each.kind == "path" and each.folder is not None}
    for library in dependencies:
        if library.name in folders:
            yield from ((folders[library.name], PurePosixPath(path)) for path in library.files)


def _in_fragment(target: TargetJob) -> Iterator[CompileJob]:
    """Return the jobs whose archives may require a library; those of the native compiler do not."""
    names = set(target.in_fragment())
    return (job for job in (*target.models, *target.others) if job.model in names and job.compiler != "native")


def _required(job: CompileJob) -> Iterator[tuple[Requirement, Library]]:
    """Yield the requirements of the job's archive, each with the content of the archive.

    An archive that is made from another archive has the same requirements.
    """
    # The source, because the archive may not have been made yet when SCons asks.
    # ``trust`` is only for sources: other compilers than `archive` have none.
    path = job.request.source if job.compiler == "archive" else job.archive
    if path.is_file():
        from mlfbuild.requirements import model_requirements

        library = archives.open_archive(path, job.request.trust)
        for module in library.modules:
            yield from ((each, library) for each in model_requirements(module, job.model, job.request.source))


def _library(libraries: Mapping[str, Library], wanted: Provider | Requirement) -> ResolvedLibrary:
    """Return the library of a provider, or the one that the archive of a requirement bundles."""
    from mlfbuild.requirements import bundled_library, provided_library

    if isinstance(wanted, Requirement):
        return bundled_library(libraries[wanted.origin], wanted, wanted.origin)
    return provided_library(wanted)
