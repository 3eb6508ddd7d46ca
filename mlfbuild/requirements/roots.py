"""Where the files of what a project provides lie on this machine, without going out."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.core import NotFetchedError, ProjectFileError
from mlfbuild.project import Provision
from mlfbuild.requirements.cache import Cache
from mlfbuild.requirements.download import url_root
from mlfbuild.requirements.git import GitPin, fetched_pin, git_root


def root_of(provision: Provision, cache: Cache, pin: GitPin | None = None) -> Path:
    """Return the folder with the files of ``provision``, which is no package; those that were fetched are checked.

    ``pin`` says which commit of a repository; by default that of ``pin_of``. Raises as that, ``NotFetchedError`` where
    the cache does not have them, and as ``git_root`` and ``url_root``.
    """
    if provision.kind == "git":
        return git_root(provision.address, pin or pin_of(provision, cache), cache)
    if provision.kind == "url":
        return url_root(provision.place, provision.sha256, cache)
    assert provision.folder is not None, f"{provision.name}: a {provision.kind} has no folder"
    return provision.folder


def pin_of(provision: Provision, cache: Cache) -> GitPin:
    """Return the commit of a repository: the locked one, or, where no lock was asked, the one that was fetched last.

    Raises ``ProjectFileError`` in builds whose lock file has none, and ``NotFetchedError``.
    """
    if provision.commit:
        return GitPin(provision.commit, provision.tree)
    if provision.unlocked:
        raise ProjectFileError([f"{provision.where}: {provision.unlocked}"])
    pin = fetched_pin(provision.address, provision.version, cache)
    if pin is None:
        raise NotFetchedError(
            f"{provision.where}: {provision.version} of {provision.place} is not in {cache.root}; run `mlfbuild fetch`"
        )
    return pin
