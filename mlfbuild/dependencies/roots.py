"""Where the files of what a project provides lie on this machine, without going out."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.dependencies.cache import Cache
from mlfbuild.dependencies.download import url_root
from mlfbuild.dependencies.git import GitPin, fetched_pin, git_root
from mlfbuild.errors import NotFetchedError
from mlfbuild.manifest.types import Provision


def root_of(provision: Provision, cache: Cache, pin: GitPin | None = None) -> Path:
    """Return the folder with the files of ``provision``, which is no package; those that were fetched are checked.

    ``pin`` says which commit of a repository; by default the one that the version was when it was fetched last. Raises
    ``NotFetchedError`` where the cache does not have them, and as ``git_root`` and ``url_root``.
    """
    if provision.kind == "git":
        return git_root(provision.address, pin or pin_of(provision, cache), cache)
    if provision.kind == "url":
        return url_root(provision.place, provision.sha256, cache)
    assert provision.path is not None, f"{provision.name}: a {provision.kind} has no folder"
    return provision.path


def pin_of(provision: Provision, cache: Cache) -> GitPin:
    """Return what the version of a repository was when it was fetched last; raises ``NotFetchedError``."""
    pin = fetched_pin(provision.address, provision.version, cache)
    if pin is None:
        raise NotFetchedError(
            f"{provision.where}: {provision.version} of {provision.place} is not in {cache.root}; run `mlfbuild fetch`"
        )
    return pin
