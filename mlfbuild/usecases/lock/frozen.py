"""Builds with exactly the inputs in ``mlfbuild.lock``: every difference is reported before anything is unpacked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mlfbuild.archive import EPOCH
from mlfbuild.core import CheckFailedError, DriftError
from mlfbuild.jobs import Progress, TargetJob, locked_pins, locked_toolchain, make_archives, with_pins
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
    """Make the archives of ``targets``, check that they are the locked ones, and return ``targets``.

    Nothing is unpacked yet. ``toolchains`` is False if no firmware is built. Raises ``DriftError`` for differences from
    the lock file: first in the inputs of compilers, then in the archives.
    """
    here = _toolchains(project, targets) if toolchains else {}
    # What is cheap to compare comes first: with a model file that differs, nothing is compiled.
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
    """Make the archives of ``targets`` and compare them and their inputs with the lock file; builds no firmware.

    ``lenders`` are targets whose archives may be copied, and ``jobs`` compile at a time, as in ``build_project``.
    Returns a line for each toolchain that is not installed here and was not compared. Raises as ``freeze``.
    """
    # Unlike a frozen build, a check goes on without a toolchain that is not installed.
    here, missing = toolchain_facts(targets, project.root)
    frozen = _as_locked(project, targets, here)
    _make_as_locked(project, frozen, lenders, jobs, progress)
    return [f"toolchain of {name}: {reason}" for name, reason in missing.items()]


def freeze_beforehand(
    project: Project, targets: Sequence[TargetJob], definitions: Sequence[str] = (), *, toolchains: bool = True
) -> list[TargetJob]:
    """Return ``targets`` with jobs that only unpack the locked archive.

    For build systems that compile later. ``definitions`` are CMake cache entries, which may name a compiler. Raises
    ``DriftError`` for differences in model files, compilers and toolchains, and for missing or superfluous entries of
    the lock file, ``CheckFailedError`` if there is no lock file, and ``InputFileError`` for a damaged one.
    """
    return _as_locked(project, targets, _toolchains(project, targets, definitions) if toolchains else {})


def _toolchains(
    project: Project, targets: Sequence[TargetJob], definitions: Sequence[str] = ()
) -> dict[str, LockedToolchain]:
    return {target.name: locked_toolchain(target, project.root, definitions) for target in targets}


def _as_locked(
    project: Project, targets: Sequence[TargetJob], toolchains: Mapping[str, LockedToolchain]
) -> list[TargetJob]:
    """Return ``targets`` with the hashes that their archives must have, after comparing everything that is known."""
    lock = _lock_of(project)
    now = Lock(
        models=model_facts(project, targets),
        # At the locked commits, so that a branch which has moved on does not count as a difference.
        dependencies=dependency_facts(with_pins(project, locked_pins(project, lock))),
        toolchains=toolchains,
    )
    # Of all targets, not only those that are built: what the lock file has beyond them is left over.
    known = {name: [model.name for model in project.models_on(name)] for name in project.targets}
    left = sorted(left_over(lock, known, project.dependencies))
    # Inputs first, then missing archives, then entries of what the project no longer has.
    _refuse(project, [*drift(lock, now), *_without_archive(lock, targets), *left])
    frozen = []
    for target in targets:
        models = (replace(job, locked=lock.archives[target.name][job.model]) for job in target.models)
        frozen.append(replace(target, models=tuple(models)))
    return frozen


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
        reason = "there is no lock file, which a frozen build requires"
        hint = "run `mlfbuild lock` and commit the file"
        raise CheckFailedError("lock-missing", place=path, reason=reason, hint=hint)
    return lock


def _without_archive(lock: Lock, targets: Sequence[TargetJob]) -> Iterator[str]:
    """Yield a line for each archive that is not in the lock file although its model is."""
    for job in (job for target in targets for job in target.models):
        if job.model in lock.models and job.model not in lock.archives.get(job.target, {}):
            yield f"archive of {job.title}: is not in the lock file"


def _refuse(project: Project, found: Sequence[str]) -> None:
    """Raise ``DriftError`` if there are differences."""
    if not found:
        return
    # A variable that is set in a shell or by a packaging tool is easily overlooked, and changes each archive.
    epoch = f" ({EPOCH} is set here and is written into archives)" if EPOCH in os.environ else ""
    path, advice = lock_path(project.path), f"restore the locked state, or accept it with `mlfbuild lock`{epoch}"
    reason = found[0] if len(found) == 1 else f"{len(found)} entries differ from the lock file"
    raise DriftError("lock-drift", place=path, reason=reason, hint=advice, problems=found)
