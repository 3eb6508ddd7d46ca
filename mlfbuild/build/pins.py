"""Git dependencies at the commits that ``mlfbuild.lock`` has: what a tag or branch is today decides no build."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mlfbuild.project import Project, Provision
from mlfbuild.requirements import GitPin, Lock, LockedDependency, lock_path, read_lock, without_secret

_LOCK = "run `mlfbuild lock`, which writes down its commit, and commit that"


def pinned(project: Project) -> Project:
    """Return ``project`` with each repository among its dependencies at the commit that its lock file has.

    Where that has none, the provision says why, and what takes its files raises it. Raises ``InputFileError`` for a
    damaged lock file; one is read only where the project has repositories that are not pinned yet.
    """
    open_ones = [each for each in project.dependencies.values() if each.kind == "git" and not each.commit]
    if not open_ones:
        return project
    path = lock_path(project.path)
    lock = read_lock(path)
    entries = {} if lock is None else lock.dependencies
    reasons = {each.name: _why_not(each, entries.get(each.name), path.name) for each in open_ones}
    pins = {each.name: _pin(entries[each.name]) for each in open_ones if not reasons[each.name]}
    return with_pins(project, pins, reasons)


def with_pins(project: Project, pins: Mapping[str, GitPin], reasons: Mapping[str, str] | None = None) -> Project:
    """Return ``project`` with its repositories at ``pins``; ``reasons`` say why others have none."""
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
    """Return ``locked_pins`` of the lock file of ``project``; raises ``InputFileError`` where that is damaged."""
    return locked_pins(project, read_lock(lock_path(project.path)))


def locked_pins(project: Project, lock: Lock | None) -> dict[str, GitPin]:
    """Return the commits in ``lock`` of the repositories that ``project`` still asks for as it did then."""
    entries = {} if lock is None else lock.dependencies
    return {
        name: _pin(entries[name])
        for name, each in project.dependencies.items()
        if each.kind == "git" and name in entries and not _why_not(each, entries[name], "")
    }


def _pin(entry: LockedDependency) -> GitPin:
    return GitPin(entry.commit, entry.tree)


def _why_not(provision: Provision, entry: LockedDependency | None, lock: str) -> str:
    """Return why ``entry`` of ``lock`` has no commit for ``provision``; empty where it has."""
    if entry is None:
        return f"{provision.version} of {without_secret(provision.place)} is not in {lock}; {_LOCK}"
    asked = ("git", without_secret(provision.place), provision.version)
    if (entry.kind, entry.place, entry.version) == asked:
        return ""
    was = f"{entry.version} of {entry.place}" if entry.kind == "git" else f"a {entry.kind}"
    return f"{lock} has it as {was}; {_LOCK}"
