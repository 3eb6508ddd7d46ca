"""Find the files of the project's providers on this machine, without access to the network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mlfbuild.core import NotFetchedError, ProjectFileError
from mlfbuild.library import ResolvedLibrary
from mlfbuild.project import Provider
from mlfbuild.requirements.archives import archive_root
from mlfbuild.requirements.cache import Cache, default_cache
from mlfbuild.requirements.folder import folder_library
from mlfbuild.requirements.git import GitPin, fetched_pin, git_root
from mlfbuild.requirements.requirement_checks import without_secret


def provided_library(provider: Provider, pin: GitPin | None = None) -> ResolvedLibrary:
    """Return the library of ``provider``, which is not a ``package``.

    ``pin`` is the commit of a repository, by default that of ``pin_of``. Raises as ``root_of`` and ``folder_library``.
    """
    cache = default_cache()
    # Once for both uses below: the record of the last fetch may change in between.
    if provider.kind == "git" and pin is None:
        pin = pin_of(provider, cache)
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
        raise NotFetchedError(
            "provider-not-fetched",
            place=provider.where,
            reason=f"{provider.version} of {without_secret(provider.place)} is missing in {cache.root}",
            hint="run `mlfbuild fetch`",
        )
    return pin
