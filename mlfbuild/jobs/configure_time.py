"""Make the archives that must exist before a build is configured, because their file lists are not known until then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlfbuild.core import MlfError
from mlfbuild.jobs.actions import COMPILED, ActionRecord
from mlfbuild.jobs.locks import trees_locked
from mlfbuild.jobs.model_builds import compile_once, is_current
from mlfbuild.jobs.model_job import CompileJob, TargetJob
from mlfbuild.jobs.progress import Progress, Task, raise_first
from mlfbuild.jobs.workers import map_in_workers


@dataclass(frozen=True)
class SharedArchive:
    """Jobs whose archives are equal."""

    jobs: list[CompileJob]
    lenders: list[CompileJob]
    """Jobs with the same archive that are not built, but whose archive can be copied."""
    made: Mapping[Path, ActionRecord] = field(default_factory=dict)
    """Those of its archives that a farm has just made."""


def shared_archives(jobs: Iterable[CompileJob], lenders: Iterable[TargetJob]) -> list[SharedArchive]:
    """Return ``jobs`` in groups with equal archives, each with the jobs of ``lenders`` that have the same archive.

    Archives are equal if source, compiler, options and what else determines them are (``CompileJob.sharing_key``). The
    groups are in the order of their first job.
    """
    groups: dict[tuple[str, str], SharedArchive] = {}
    for job in jobs:
        groups.setdefault(job.sharing_key(), SharedArchive([], [])).jobs.append(job)
    # Targets that are not built may have the archive from before; copying is much faster than compiling.
    for job in (job for target in lenders for job in (*target.models, *target.others)):
        if job.sharing_key() in groups:
            groups[job.sharing_key()].lenders.append(job)
    return list(groups.values())


def make_archives(
    targets: Sequence[TargetJob],
    lenders: Sequence[TargetJob],
    *,
    every: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> None:
    """Make the archives of ``targets`` that must exist before configuration (``made_first``) and are not up to date.

    With ``every``, all other archives are also made. ``jobs`` is the number of parallel jobs. An archive that one of
    ``lenders`` has is copied. Raises as ``compile_once``; archives that are already finished stay.
    """
    watch = progress or Progress()
    wanted = (job for target in targets for job in target.models if every or job.made_first)
    # Current ones are left out here rather than in the workers: starting a worker process takes longer than comparing
    # hashes.
    stale = [job for job in wanted if not is_current(job)]
    groups = shared_archives(stale, lenders)
    errors: dict[int, MlfError] = {}
    watch.expect(len(groups))
    for group, made in map_in_workers(_make, groups, jobs, lambda group, _: watch.start(_task(group))):
        if isinstance(made, MlfError):
            errors[groups.index(group)] = made
            watch.fail(_task(group))
        else:
            watch.finish(_task(group), "compiled" if made else "copied")
    # Only now, so that archives that other workers were making are finished and need not be made again.
    raise_first(errors, watch)


def _task(group: SharedArchive) -> Task:
    job = group.jobs[0]
    title = f"{job.model} for {', '.join(job.target for job in group.jobs)}"
    return Task("compile", title, job.target, model=job.model)


def _make(group: SharedArchive, send: Callable[[None], None]) -> bool:
    send(None)
    # All locks of the group at once and in one order: another process may be making one of these archives for another
    # target.
    with trees_locked(group.jobs):
        records = compile_once(group.jobs, group.lenders)
    return any(record.origin == COMPILED for record in records.values())
