"""Builds that take what ``mlfbuild.lock`` has and nothing else: every drift is named, before anything is unpacked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mlfbuild.build import Progress, TargetJob, locked_pins, locked_toolchain, make_archives, with_pins
from mlfbuild.core import CheckFailedError, DriftError
from mlfbuild.project import Project
from mlfbuild.requirements import Lock, LockedToolchain, drift, left_over, lock_path, read_lock
from mlfbuild.usecases.lock.locking import archive_facts, dependency_facts, model_facts, toolchain_facts


def freeze(
    project: Project,
    targets: Sequence[TargetJob],
    *,
    lenders: Sequence[TargetJob] = (),
    jobs: int = 1,
    progress: Progress | None = None,
    toolchains: bool = True,
) -> list[TargetJob]:
    """Return ``targets`` with their archives made and found to be the locked ones; nothing is unpacked yet.

    ``toolchains`` is False where no firmware is built. Raises ``DriftError`` for whatever is not as locked: first for
    what compiling begins with, then for the archives.
    """
    here = _toolchains(project, targets) if toolchains else {}
    frozen = _as_locked(project, targets, here)
    _make_as_locked(project, frozen, lenders, jobs, progress)
    return frozen


def check_lock(
    project: Project,
    targets: Sequence[TargetJob],
    *,
    lenders: Sequence[TargetJob] = (),
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[str]:
    """Make the archives of ``targets`` and find them, and what they come from, as locked; builds no firmware.

    Returns a line for each toolchain that is not installed here, and so was not judged. Raises as ``freeze`` does.
    """
    here, missing = toolchain_facts(targets, project.root)
    frozen = _as_locked(project, targets, here)
    _make_as_locked(project, frozen, lenders, jobs, progress)
    return [f"toolchain of {name}: {reason}" for name, reason in missing.items()]


def freeze_beforehand(
    project: Project, targets: Sequence[TargetJob], definitions: Sequence[str] = (), *, toolchains: bool = True
) -> list[TargetJob]:
    """Return ``targets`` with jobs that refuse to unpack another archive than the locked one.

    For build systems that compile later, by themselves. ``definitions`` are CMake cache entries, which may name a
    compiler. Raises ``DriftError`` for model files, compilers, toolchains, and for what has no entry in the lock or is
    left over there, and ``CheckFailedError`` where there is no lock file; ``InputFileError`` for a damaged one.
    """
    return _as_locked(project, targets, _toolchains(project, targets, definitions) if toolchains else {})


def _toolchains(
    project: Project, targets: Sequence[TargetJob], definitions: Sequence[str] = ()
) -> dict[str, LockedToolchain]:
    return {target.name: locked_toolchain(target, project.root, definitions) for target in targets}


def _as_locked(
    project: Project, targets: Sequence[TargetJob], toolchains: Mapping[str, LockedToolchain]
) -> list[TargetJob]:
    """Return ``targets`` with the hashes that their archives must have, where all that is known before is as locked."""
    lock = _lock_of(project)
    now = Lock(
        models=model_facts(project, targets),
        dependencies=dependency_facts(with_pins(project, locked_pins(project, lock))),
        toolchains=toolchains,
    )
    known = {name: [model.name for model in project.models_on(name)] for name in project.targets}
    left = sorted(left_over(lock, known, project.dependencies))
    _refuse(project, [*drift(lock, now), *_without_archive(lock, targets), *left])
    return [
        replace(
            target,
            models=tuple(replace(job, locked=lock.archives[target.name][job.model]) for job in target.models),
        )
        for target in targets
    ]


def _make_as_locked(
    project: Project,
    frozen: Sequence[TargetJob],
    lenders: Sequence[TargetJob],
    jobs: int,
    progress: Progress | None,
) -> None:
    make_archives(frozen, lenders, every=True, jobs=jobs, progress=progress)
    locked = {target.name: {job.model: job.locked or "" for job in target.models} for target in frozen}
    _refuse(project, drift(Lock(archives=locked), Lock(archives=archive_facts(frozen))))


def _lock_of(project: Project) -> Lock:
    path = lock_path(project.path)
    lock = read_lock(path)
    if lock is None:
        raise CheckFailedError(
            f"{path}: no such lock file, and a frozen build takes what it has; run `mlfbuild lock` and commit it"
        )
    return lock


def _without_archive(lock: Lock, targets: Sequence[TargetJob]) -> Iterator[str]:
    """Yield a line for each archive that the lock does not have although it has the model."""
    for job in (job for target in targets for job in target.models):
        if job.model in lock.models and job.model not in lock.archives.get(job.target, {}):
            yield f"archive of {job.title}: is not in the lock"


def _refuse(project: Project, found: Sequence[str]) -> None:
    """Raise ``DriftError`` where anything was ``found``."""
    if not found:
        return
    epoch = "; SOURCE_DATE_EPOCH is set here, and archives hold it" if "SOURCE_DATE_EPOCH" in os.environ else ""
    path, advice = lock_path(project.path), f"put back what changed, or accept it with `mlfbuild lock`{epoch}"
    if len(found) == 1:
        raise DriftError("lock-drift", place=path, reason=found[0], hint=advice, problems=found)
    raise DriftError(
        "lock-drift", place=path, reason=f"{len(found)} entries differ from the lock file", hint=advice, problems=found
    )
