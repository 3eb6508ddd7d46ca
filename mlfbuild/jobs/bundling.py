"""``bundle: true``: which libraries a build adds to an archive, and how they enter the archive's key."""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.compilers import compiler_called
from mlfbuild.core import MlfError, package_fingerprint, sha256
from mlfbuild.jobs.model_job import CompileJob
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
