"""Dependencies that archives take along: what of the project's is taken, and what that makes of an archive's key."""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.build.jobs import CompileJob
from mlfbuild.build.wanted import wishes_of
from mlfbuild.compilers import compiler_called
from mlfbuild.core import MlfError, package_fingerprint, sha256
from mlfbuild.library import Library, Wish
from mlfbuild.project import Provision
from mlfbuild.requirements import Source


def with_bundles(job: CompileJob, library: Library) -> Library:
    """Return ``library`` with those dependencies inside that it needs and the project bundles.

    Raises as ``resolve`` and ``bundled``, and where what is provided is not on this machine.
    """
    found = [wish for wish in _wishes(job, library) if wish.name in _names(job)]
    if not found:
        return library
    from mlfbuild.requirements import (
        bundled,  # few projects bundle anything
        resolve,
    )

    dependencies = resolve(found, job.bundles, _source)
    return bundled(library, {source.name: source for source in dependencies if isinstance(source, Source)})


def bundle_key(job: CompileJob) -> str:
    """Return the hash of what the job's archive may take along, empty where that is nothing.

    Which of it the archive needs is known beforehand where it is made from another archive; of what only a compiler
    can tell, all counts. Raises where what is provided is not on this machine.
    """
    provisions = [each for each in job.bundles if each.name in _needed_names(job)]
    if not provisions:
        return ""
    from mlfbuild.build.provided import provided_source
    from mlfbuild.requirements import content_hash

    hashes = [f"{each.name} {content_hash(provided_source(each))}" for each in provisions]
    return sha256("\n".join([package_fingerprint(), *sorted(hashes)]).encode())


def _names(job: CompileJob) -> set[str]:
    return {provision.name for provision in job.bundles}


def _needed_names(job: CompileJob) -> set[str]:
    if job.compiler != "archive" or not job.bundles:
        return _names(job)
    try:
        library = compiler_called(job.compiler).compile(job.request)
    except MlfError:  # whoever compiles it says what is wrong
        return set()
    return {wish.name for wish in _wishes(job, library)}


def _wishes(job: CompileJob, library: Library) -> Iterator[Wish]:
    for module in library.modules:
        yield from wishes_of(module, job.model, job.request.source)


def _source(wanted: Provision | Wish) -> Source:
    from mlfbuild.build.provided import provided_source

    assert isinstance(wanted, Provision)  # a wish is asked for where the project provides nothing
    return provided_source(wanted)
