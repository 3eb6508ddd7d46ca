"""Match the requirements of archives with the providers of the project, or report all requirements that are not met.

They are matched by short name. A provider takes precedence over a library that an archive bundles, and its version has
also to satisfy the requirement. Files are read by ``library_of``, which is called once for each provider and for each
archive's bundle, only if no mistake was found: ``provided_library`` finds those of a provider on this machine. Nothing
here accesses the network.

For example, the requirement ``cmsis-nn v4.1.0`` of ``kws.tar`` and the provider ``cmsis-nn: {path: ../CMSIS-NN,
version: v4.1.0}`` resolve to the library in that folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, groupby
from pathlib import Path

from mlfbuild.core import Diagnostic, InputFileError, NotFetchedError, ProjectFileError, quoted
from mlfbuild.library import (
    ARCHIVE_FOLDER,
    DifferentBundlesError,
    Module,
    Requirement,
    ResolvedLibrary,
    requirements_of,
    short_name,
    united,
)
from mlfbuild.project import Provider
from mlfbuild.requirements.archives import archive_root
from mlfbuild.requirements.cache import Cache, default_cache
from mlfbuild.requirements.command_lines import lines_to_add, needs, origin, requires, unknown_version
from mlfbuild.requirements.folder import folder_library
from mlfbuild.requirements.git import GitPin, fetched_pin, git_root
from mlfbuild.requirements.requirement_checks import two_upstreams, unsound, without_secret
from mlfbuild.requirements.versions import is_commit, is_range, same_version, satisfies

LibraryOf = Callable[[Provider | Requirement], ResolvedLibrary]
"""Returns the library of a provider (never a ``package``), or the one that the archive of a requirement bundles."""


def model_requirements(module: Module, model: str, source: Path) -> tuple[Requirement, ...]:
    """Return the requirements of ``module`` of the project's ``model``; their origin is ``kws (kws.tar)``.

    ``source`` is the file of the model, of which only the name is used. Both those in the metadata and those that are
    recognised by headers are returned.
    """
    return tuple(replace(one, origin=f"{model} ({source.name})") for one in requirements_of(module))


def resolve(
    requirements: Iterable[Requirement], providers: Iterable[Provider], library_of: LibraryOf
) -> tuple[ResolvedLibrary, ...]:
    """Return the libraries that meet ``requirements``, sorted by name; the order of the arguments does not matter.

    Raises ``InputFileError`` for invalid requirements, ``ProjectFileError`` with every requirement that is not met, and
    the errors of ``library_of``.
    """
    pairs = list(_matched(requirements, providers))
    problems = [problem for same, provider in pairs for problem in _problems(same, provider)]
    if problems:
        raise ProjectFileError(problems)
    return tuple(_library(same, provider, library_of) for same, provider in pairs)


def requirement_problems(requirements: Iterable[Requirement], providers: Iterable[Provider]) -> list[Diagnostic]:
    """Return a problem for each of ``requirements`` that is not met, without reading the files of providers.

    Raises ``InputFileError`` for invalid requirements.
    """
    return [problem for same, provider in _matched(requirements, providers) for problem in _problems(same, provider)]


def _matched(
    requirements: Iterable[Requirement], providers: Iterable[Provider]
) -> Iterator[tuple[Sequence[Requirement], Provider | None]]:
    """Yield the requirements of each name, sorted, with the provider of that name."""
    provided = {provider.name: provider for provider in providers}
    # A set, because all modules of an archive usually have the same requirements.
    ordered = sorted(set(requirements), key=_key)
    for requirement in ordered:
        reason = unsound(requirement)
        if reason is not None:
            raise InputFileError(
                "requirement-invalid",
                place=f"{origin(requirement)}: dependency {quoted(requirement.name)}",
                reason=reason,
                hint="correct external_dependencies in the metadata of the archive",
            )
    for name, same in groupby(ordered, key=lambda requirement: requirement.name):
        yield tuple(same), provided.get(name)


def _key(one: Requirement) -> tuple[str, ...]:
    """Sort by name, then so that messages do not depend on the order in which archives were read."""
    return (one.name, one.origin, one.version, one.url_type, one.url, one.exporter, *one.headers)


# Requirements that are not met ---------------------------------------------------------------------------------------


def _problems(requirements: Sequence[Requirement], provider: Provider | None) -> Iterator[Diagnostic]:
    """Yield the reasons why ``requirements``, all for one library, are not met."""
    place = provider.where if provider and provider.where else f"dependency {requirements[0].name}"
    disagreeing = [*_two_libraries(requirements, place), *_two_versions(requirements, place)]
    # Otherwise at least one of them would be reported again as not met by the provider.
    if disagreeing:
        yield from disagreeing
    elif provider is not None:
        yield from _unsatisfied(requirements, provider, place)
    elif unmet := [one for one in requirements if one.url_type != ARCHIVE_FOLDER]:
        yield _missing(unmet, place)


def _two_libraries(requirements: Sequence[Requirement], place: str) -> Iterator[Diagnostic]:
    found = two_upstreams(requirements)
    if found is not None:
        one, other = (f"{origin(each)} from {without_secret(each.url)}" for each in found)
        yield Diagnostic(
            "requirement-two-libraries",
            place=place,
            reason=f"two libraries have this name: {one}, {other}",
            hint="export one of them with another short_name",
        )


def _two_versions(requirements: Sequence[Requirement], place: str) -> Iterator[Diagnostic]:
    exact = [one for one in requirements if one.version and not is_range(one.version)]
    different = (pair for pair in combinations(exact, 2) if not same_version(pair[0].version, pair[1].version))
    for one, other in different:
        yield Diagnostic(
            "requirement-two-versions",
            place=place,
            reason=f"{requires(one)}, but {requires(other)}",
            hint="use a project file for each version, or compile one model again for the other version",
        )
        return


def _unsatisfied(requirements: Sequence[Requirement], provider: Provider, place: str) -> Iterator[Diagnostic]:
    stated = provider.version
    for one in requirements:
        if not one.version and not stated:
            yield Diagnostic(
                "requirement-version-unknown",
                place=place,
                reason=unknown_version(one),
                hint="find out the version, and state it with the key version",
            )
        # The generated CMake file compares the version of a package with the required one.
        elif not stated and provider.kind != "package":
            yield Diagnostic(
                "provider-without-version",
                place=place,
                reason=f"{requires(one)}, but no version is stated",
                hint="add the key version with the version of this library",
            )
        elif one.version and stated and not _meets(provider, one):
            reason = f"is {stated}, but {requires(one)}"
            hint = "provide a version that satisfies the requirement"
            yield Diagnostic("provider-other-version", place=place, reason=reason, hint=hint)


def _meets(provider: Provider, requirement: Requirement) -> bool:
    """Return whether the version satisfies the requirement, or may do so once Git knows the commit of a tag."""
    # A tag and a commit cannot be compared as texts; `_library` compares the commit when it is known.
    later = provider.kind == "git" and is_commit(requirement.version) and not is_commit(provider.version)
    return later or satisfies(provider.version, requirement.version)


def _missing(requirements: Sequence[Requirement], place: str) -> Diagnostic:
    reason = f"{needs(requirements)}, but the project has no provider of it"
    unknown = next((one for one in requirements if not one.version), None)
    if unknown is not None:
        reason = f"{reason}, and {unknown_version(unknown)}"
    hint = f"add to dependencies of the project file `{lines_to_add(requirements)}`"
    return Diagnostic("requirement-without-provider", place=place, reason=reason, hint=hint)


# Libraries -----------------------------------------------------------------------------------------------------------


def _library(requirements: Sequence[Requirement], provider: Provider | None, library_of: LibraryOf) -> ResolvedLibrary:
    if provider is None:
        return _bundled(requirements, library_of)
    if provider.kind == "package":
        return ResolvedLibrary(
            provider.name,
            provider.version,
            license=provider.license,
            package=provider.place,
            target=provider.target,
            wanted=_all_required(requirements),
        )
    library = _checked(library_of(provider), provider.name)
    for one in requirements:
        if one.version and not satisfies(provider.version, one.version) and not satisfies(library.commit, one.version):
            reason = f"is {provider.version}, commit {library.commit}, but {requires(one)}"
            place = provider.where or provider.name
            raise ProjectFileError.of(
                "provider-other-commit", place=place, reason=reason, hint="set version to the required commit"
            )
    return library


def _bundled(requirements: Sequence[Requirement], library_of: LibraryOf) -> ResolvedLibrary:
    name = requirements[0].name
    # Several modules of an archive may name the same folder, which is read once.
    bundles = {(one.origin, one.url): one for one in requirements}.values()
    try:
        return united([(origin(one), _checked(library_of(one), name)) for one in bundles])
    except DifferentBundlesError as error:
        reason = f"{error.first} and {error.second} bundle different libraries: {error.reason}"
        hint = "add a provider of it to the project file, or bundle one version of it into both"
        raise InputFileError("bundles-differ", place=f"dependency {name}", reason=reason, hint=hint) from None


def _checked(library: ResolvedLibrary, name: str) -> ResolvedLibrary:
    if short_name(library.name) != name:
        raise InputFileError(
            "library-other-name",
            place=f"dependency {quoted(name)}",
            reason=f"the library that was found is called {quoted(library.name)}",
            hint="correct the name in one of the two",
        )
    return library


def _all_required(requirements: Sequence[Requirement]) -> str:
    """Return the one version that is required, or the range that all agree on."""
    versions = sorted({one.version for one in requirements if one.version})
    return next((version for version in versions if not is_range(version)), ",".join(versions))


def provided_library(provider: Provider) -> ResolvedLibrary:
    """Return the library of ``provider``, which is not a ``package``.

    Raises as ``root_of`` and ``folder_library``.
    """
    cache = default_cache()
    # Once for both uses below: the record of the last fetch may change in between.
    pin = pin_of(provider, cache) if provider.kind == "git" else None
    library = folder_library(root_of(provider, cache, pin), provider, commit=pin.commit if pin else "")
    return replace(library, url=public_address(provider))


def public_address(provider: Provider) -> str:
    """Return the address that an archive may contain, without a password; empty for a folder of this machine.

    ``path``, ``file://`` and a repository on this machine give an empty text.
    """
    # A path says something about the machine and its user, and means nothing on another one.
    local = provider.kind == "path" or provider.folder is not None or provider.place.startswith("file:")
    return "" if local else without_secret(provider.place)


def root_of(provider: Provider, cache: Cache, pin: GitPin | None = None) -> Path:
    """Return the folder with the files of ``provider``, which is not a package; fetched files are hashed.

    ``pin`` is the commit of a repository, by default that of ``pin_of``. Raises ``NotFetchedError`` if the cache does
    not have the files, and as ``pin_of``, ``git_root`` and ``archive_root``.
    """
    if provider.kind == "git":
        return git_root(provider.address, pin or pin_of(provider, cache), cache)
    if provider.kind == "url":
        return archive_root(provider.place, provider.sha256, cache)
    assert provider.folder is not None, f"{provider.name}: a {provider.kind} has no folder"
    return provider.folder


def pin_of(provider: Provider, cache: Cache) -> GitPin:
    """Return the commit of a repository: the locked one or, outside of builds, the one that was fetched last.

    Raises ``ProjectFileError`` in builds if the lock file has none, and ``NotFetchedError``.
    """
    if provider.commit:
        return GitPin(provider.commit, provider.tree)
    if provider.unlocked:
        hint = "run `mlfbuild lock` and commit the lock file"
        raise ProjectFileError.of("provider-not-locked", place=provider.where, reason=provider.unlocked, hint=hint)
    pin = fetched_pin(provider.address, provider.version, cache)
    if pin is None:
        reason = f"{provider.version} of {without_secret(provider.place)} is missing in {cache.root}"
        raise NotFetchedError("provider-not-fetched", place=provider.where, reason=reason, hint="run `mlfbuild fetch`")
    return pin
