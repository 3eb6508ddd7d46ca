"""Archives that must be there before a build can be configured: only they tell which files a tree will have."""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.steps.jobs import TargetJob
from mlfbuild.steps.models import compile_once, is_current
from mlfbuild.steps.progress import Progress, Silent
from mlfbuild.steps.twins import Twins, twins
from mlfbuild.steps.workers import map_in_workers

__all__ = ["make_archives"]


def make_archives(
    targets: Sequence[TargetJob], lenders: Sequence[TargetJob], *, jobs: int = 1, progress: Progress | None = None
) -> None:
    """Make the archives of all models of ``targets`` that somebody else's program compiles, where they are not current.

    ``jobs`` programs run at a time. An archive that is there for one of ``lenders`` is copied. Raises as
    ``compile_once``; the archives that were finished before stay.
    """
    watch = progress or Silent()
    external = (job for target in targets for job in target.models if job.request.program is not None)
    stale = [job for job in external if not is_current(job)]
    groups = twins(stale, lenders)
    for group in groups:
        watch.start(_task(group))
    for group, compiled in map_in_workers(_make, groups, jobs):
        watch.finish(_task(group), "compiled" if compiled else "copied")


def _task(group: Twins) -> str:
    return f"compile {group.jobs[0].model} for {', '.join(job.target for job in group.jobs)}"


def _make(group: Twins) -> bool:
    return compile_once(group.jobs, group.lenders) is not None
