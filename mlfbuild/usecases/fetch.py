"""Fetch what the project's dependencies are made of: with `mlfbuild lock` the one step that goes out."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.build import UP_TO_DATE, Progress, Silent, Task, raise_first, watched
from mlfbuild.core import MlfError, ProjectFileError, Tell, UsageError
from mlfbuild.project import Project, Provision, load_project
from mlfbuild.requirements import (
    Cache,
    GitPin,
    default_cache,
    fetch_pinned,
    fetch_url,
    fetch_version,
    root_of,
    url_tree,
)

FETCHED_KINDS = ("git", "url")
"""Kinds of provisions that come from outside; the others are there, or the firmware's own build has them."""


@dataclass(frozen=True)
class Fetched:
    """A dependency that is on this machine now."""

    provision: Provision
    folder: Path
    """Of its files, in the cache."""
    new: bool
    """Whether it was fetched now; it was there already otherwise."""
    tree: str
    """Git's hash of the files; of an archive by SHA-256."""
    commit: str = ""
    """Of a repository."""


def read_project(path: Path) -> Project:
    """Read the project file ``path``; model files and folders that it names need not be there yet.

    Raises ``ProjectFileError`` with every mistake at once.
    """
    return load_project(path)


def fetch_dependencies(
    project: Project,
    *,
    pins: Mapping[str, GitPin] | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> list[Fetched]:
    """Fetch every dependency of ``project`` that comes from outside, whether a model needs it or not.

    ``pins`` has the commits that are locked, by name; a version without one is what it is in its repository now. The
    others are fetched although one fails. Raises ``ProjectFileError`` for a version that is not there, and as
    ``fetch_version``, ``fetch_pinned`` and ``fetch_url``.
    """
    watch = progress or Silent()
    place = cache or default_cache()
    wanted = [each for each in project.dependencies.values() if each.kind in FETCHED_KINDS]
    watch.expect(len(wanted))
    done: list[Fetched] = []
    errors: dict[int, MlfError] = {}
    for number, provision in enumerate(wanted):
        task = Task("fetch", provision.name, "")
        try:
            with watched(watch, task):
                found = _fetch(provision, (pins or {}).get(provision.name), place, functools.partial(watch.step, task))
                watch.finish(task, _result(found) if found.new else UP_TO_DATE)
                done.append(found)
        except MlfError as error:
            errors[number] = error
    raise_first(errors, watch)
    return done


def _fetch(provision: Provision, pin: GitPin | None, cache: Cache, tell: Tell) -> Fetched:
    try:
        if provision.kind == "url":
            new = fetch_url(provision.place, provision.sha256, cache, tell)
            return Fetched(provision, root_of(provision, cache), new, url_tree(provision.sha256, cache))
        if pin is None:
            pin, new = fetch_version(provision.address, provision.version, cache, tell)
        else:
            new = fetch_pinned(provision.address, provision.version, pin, cache, tell)
        return Fetched(provision, root_of(provision, cache, pin), new, pin.tree, pin.commit)
    except UsageError as error:
        raise ProjectFileError([f"{provision.where}: {error}"]) from None


def _result(fetched: Fetched) -> str:
    return f"fetched {what(fetched)}"


def what(fetched: Fetched) -> str:
    """Return what people call it: ``v7.0.0, commit 22080c68d040``, or ``archive c0ffee123456``."""
    provision = fetched.provision
    if provision.kind == "url":
        return f"archive {provision.sha256[:12]}"
    return f"{provision.version}, commit {fetched.commit[:12]}"
