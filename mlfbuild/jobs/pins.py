"""Set Git providers to the commits in ``mlfbuild.lock``, so that builds do not depend on moving tags or branches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mlfbuild.project import Project, Provider
from mlfbuild.requirements import GitPin, Lock, LockedProvider, lock_path, read_lock, without_secret


def pinned(project: Project) -> Project:
    """Return ``project`` with each repository among its providers at the commit in its lock file.

    If the lock file has no commit, the provider stores the reason, which is raised when its files are used. Raises
    ``InputFileError`` for a damaged lock file, which is read only if the project has repositories without a commit.
    """
    # A commit in the project file itself needs no lock file.
    unpinned = [each for each in project.dependencies.values() if each.kind == "git" and not each.commit]
    if not unpinned:
        return project
    path = lock_path(project.path)
    lock = read_lock(path)
    entries = {} if lock is None else lock.dependencies
    # Kept and not raised: a project with one repository without a pin can still build the models that do not require
    # it.
    reasons = {each.name: _why_not(each, entries.get(each.name), path.name) for each in unpinned}
    pins = {each.name: _pin(entries[each.name]) for each in unpinned if not reasons[each.name]}
    return with_pins(project, pins, reasons)


def with_pins(project: Project, pins: Mapping[str, GitPin], reasons: Mapping[str, str] | None = None) -> Project:
    """Return ``project`` with its repositories at ``pins``; ``reasons`` explain why others have none."""
    return replace(
        project,
        dependencies={
            name: replace(each, commit=pins[name].commit, tree=pins[name].tree)
            if name in pins
            else replace(each, unlocked=(reasons or {}).get(name, ""))
            for name, each in project.dependencies.items()
        },
    )


def locked(project: Project) -> dict[str, GitPin]:
    """Return ``locked_pins`` of the lock file of ``project``; raises ``InputFileError`` if it is damaged."""
    return locked_pins(project, read_lock(lock_path(project.path)))


def locked_pins(project: Project, lock: Lock | None) -> dict[str, GitPin]:
    """Return the commits in ``lock`` of the repositories whose address and version have not changed since.

    The keys are the names of providers; ``lock`` may be ``None``, and then there are none. Providers of other kinds are
    left out.
    """
    entries = {} if lock is None else lock.dependencies
    return {
        name: _pin(entries[name])
        for name, each in project.dependencies.items()
        if each.kind == "git" and name in entries and not _why_not(each, entries[name], "")
    }


def _pin(entry: LockedProvider) -> GitPin:
    return GitPin(entry.commit, entry.tree)


def _why_not(provider: Provider, entry: LockedProvider | None, lock: str) -> str:
    """Return why ``entry`` of ``lock`` has no commit for ``provider``; empty if it has one."""
    if entry is None:
        return f"{provider.version} of {without_secret(provider.place)} is not in {lock}"
    # Addresses may contain a token, which is not written into the lock file.
    asked = ("git", without_secret(provider.place), provider.version)
    if (entry.kind, entry.place, entry.version) == asked:
        return ""
    was = f"{entry.version} of {entry.place}" if entry.kind == "git" else f"a {entry.kind}"
    return f"{lock} has {was} instead of {provider.version} of {without_secret(provider.place)}"
