"""Compile the models of a build on a farm, all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.core import MlfError
from mlfbuild.farm import Farm, FarmTask
from mlfbuild.jobs.actions import ActionRecord
from mlfbuild.jobs.configure_time import SharedArchive
from mlfbuild.jobs.locks import trees_locked
from mlfbuild.jobs.model_builds import archive_is_known, compile_action, keep_archive, least_ram
from mlfbuild.jobs.model_job import CompileJob
from mlfbuild.jobs.progress import Progress, Task, raise_first
from mlfbuild.jobs.travel import can_travel, compile_task


def make_on_farm(farm: Farm, groups: Sequence[SharedArchive], watch: Progress) -> list[SharedArchive]:
    """Compile on ``farm`` one archive for each of ``groups`` whose job can travel and that is nowhere here yet.

    Return the groups with what was made; archives are written with their records, so that a build then finds them up to
    date. Raises the first error in the order of the groups, after all tasks have ended; archives that were made stay.
    """
    tasks: dict[str, tuple[int, CompileJob]] = {}

    def sent() -> Iterator[FarmTask]:
        for number, group in enumerate(groups):
            job = least_ram(group.jobs)
            if can_travel(job) and not archive_is_known(group.jobs, group.lenders):
                task = compile_task(job, compile_action(job))
                tasks[task.key] = number, job
                watch.expect(1)
                watch.start(_shown(job))
                yield task

    errors: dict[int, MlfError] = {}
    made: dict[int, dict[Path, ActionRecord]] = {}
    for task, result in farm.run(sent()):
        number, job = tasks[task.key]
        if isinstance(result, MlfError):
            errors[number] = result
            watch.fail(_shown(job))
        else:
            with trees_locked([job]):
                made[number] = {job.archive: keep_archive(job, compile_action(job), result)}
            watch.finish(_shown(job), f"compiled on {result.worker}")
    raise_first(errors, watch)
    return [replace(group, made=made.get(number, {})) for number, group in enumerate(groups)]


def _shown(job: CompileJob) -> Task:
    return Task("compile", job.title, job.target, model=job.model)
