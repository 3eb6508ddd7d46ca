"""Make the archives that must exist before a build can be configured, because their file lists are not known."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlfbuild.core import MlfError
from mlfbuild.jobs.locks import trees_locked
from mlfbuild.jobs.model_builds import compile_once, is_current
from mlfbuild.jobs.model_job import TargetJob
from mlfbuild.jobs.progress import Progress, Silent, Task, raise_first
from mlfbuild.jobs.shared_archives import Twins, twins
from mlfbuild.jobs.workers import map_in_workers

__all__ = ["make_archives"]


def make_archives(
    targets: Sequence[TargetJob],
    lenders: Sequence[TargetJob],
    *,
    every: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> None:
    """Make the archives of ``targets`` that must exist before configuration (``made_first``) and are not up to date.

    With ``every``, all other archives are made, too. ``jobs`` is the number of parallel jobs. An archive that one of
    ``lenders`` has is copied. Raises as ``compile_once``; archives that are already finished stay.
    """
    watch = progress or Silent()
    wanted = (job for target in targets for job in target.models if every or job.made_first)
    stale = [job for job in wanted if not is_current(job)]
    groups = twins(stale, lenders)
    errors: dict[int, MlfError] = {}
    watch.expect(len(groups))
    for group, made in map_in_workers(_make, groups, jobs, lambda group, _: watch.start(_task(group))):
        if isinstance(made, MlfError):
            errors[groups.index(group)] = made
            watch.fail(_task(group))
        else:
            watch.finish(_task(group), "compiled" if made else "copied")
    raise_first(errors, watch)


def _task(group: Twins) -> Task:
    job = group.jobs[0]
    title = f"{job.model} for {', '.join(job.target for job in group.jobs)}"
    return Task("compile", title, job.target, model=job.model)


def _make(group: Twins, tell: Callable[[None], None]) -> bool:
    tell(None)
    with trees_locked(group.jobs):
        return compile_once(group.jobs, group.lenders) is not None
