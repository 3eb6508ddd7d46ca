"""Fetch the libraries that the project's providers name: with `mlfbuild lock` the only step that uses the network."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import MlfError, OnProgress, ProjectFileError, UsageError
from mlfbuild.jobs import UP_TO_DATE, Progress, Task, raise_first, watched
from mlfbuild.project import Project, Provider
from mlfbuild.requirements import Cache, GitPin, default_cache, fetch_archive, fetch_commit, fetch_version, root_of

FETCHED_KINDS = ("git", "url")
"""Kinds of providers whose files are fetched."""


@dataclass(frozen=True)
class Fetched:
    """A provider whose files are in the cache."""

    provider: Provider
    folder: Path
    """The folder of its files in the cache."""
    new: bool
    """Whether it was fetched now, and was not in the cache before."""
    pin: GitPin | None = None
    """The commit of a repository."""


def fetch_dependencies(
    project: Project,
    *,
    pins: Mapping[str, GitPin] | None = None,
    progress: Progress | None = None,
) -> list[Fetched]:
    """Fetch the files of all repositories and archives among the providers of ``project``, required or not.

    ``pins`` has the locked commits by name; a version without one is what it is in its repository now. If one
    fails, the others are fetched anyway. Raises ``ProjectFileError`` for a version that does not exist, and as
    ``fetch_version``, ``fetch_commit`` and ``fetch_archive``.
    """
    watch = progress or Progress()
    place = default_cache()
    wanted = [each for each in project.dependencies.values() if each.kind in FETCHED_KINDS]
    watch.expect(len(wanted))
    done: list[Fetched] = []
    errors: dict[int, MlfError] = {}
    # All are tried, so that one address that does not answer does not hide the mistakes in the others.
    for number, provider in enumerate(wanted):
        task = Task("fetch", provider.name, "")
        try:
            with watched(watch, task):
                found = _fetch(provider, (pins or {}).get(provider.name), place, functools.partial(watch.step, task))
                watch.finish(task, f"fetched {what(found)}" if found.new else UP_TO_DATE)
                done.append(found)
        except MlfError as error:
            errors[number] = error
    raise_first(errors, watch)
    return done


def _fetch(provider: Provider, pin: GitPin | None, cache: Cache, on_progress: OnProgress) -> Fetched:
    try:
        if provider.kind == "url":
            new = fetch_archive(provider.place, provider.sha256, cache, on_progress)
        elif pin is None:
            pin, new = fetch_version(provider.address, provider.version, cache, on_progress)
        else:
            new = fetch_commit(provider.address, provider.version, pin, cache, on_progress)
        return Fetched(provider, root_of(provider, cache, pin), new, pin)
    except UsageError as error:
        place = f"{provider.where}: {error.place}" if error.place else provider.where
        raise ProjectFileError.of(error.code, place=place, reason=error.reason, hint=error.hint) from None


def what(fetched: Fetched) -> str:
    """Return version and commit, such as ``v7.0.0, commit 22080c68d040``, or ``archive c0ffee123456``.

    For one line of progress or of a result. Commits and hashes are cut to twelve digits, which is enough to find them.
    """
    provider = fetched.provider
    if fetched.pin is None:
        return f"archive {provider.sha256[:12]}"
    return f"{provider.version}, commit {fetched.pin.commit[:12]}"
