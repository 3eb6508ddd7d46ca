"""Compile the models of a build on a farm, all at once, and make their trees on workers that run them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.core import MlfError
from mlfbuild.farm import FarmSettings, FarmTask, open_farm, program_versions
from mlfbuild.jobs.actions import ActionRecord
from mlfbuild.jobs.configure_time import SharedArchive
from mlfbuild.jobs.locks import trees_locked
from mlfbuild.jobs.model_builds import (
    archive_is_known,
    compile_action,
    finish_target,
    keep_archive,
    least_ram,
    restore_archive,
    unpack_job,
)
from mlfbuild.jobs.model_job import CompileJob, TargetJob
from mlfbuild.jobs.progress import Progress, Task, raise_first
from mlfbuild.jobs.travel import can_travel, compile_task
from mlfbuild.targets import GCC, compiler_program, cpu_of_toolchain


def make_on_farm(settings: FarmSettings, groups: Sequence[SharedArchive], watch: Progress) -> list[SharedArchive]:
    """Compile on a farm one archive for each of ``groups`` whose job can travel and that is nowhere yet.

    What the cache has is taken from there. Return the groups with what was made; archives are written with their
    records, so that a build then finds them up to date. Raises as ``open_farm``, and the first error in the order of
    the groups, after all tasks have ended; archives that were made stay.
    """
    made: dict[int, ActionRecord] = {}
    tasks: dict[str, int] = {}
    chosen = [least_ram(group.jobs) for group in groups]
    for number, (job, group) in enumerate(zip(chosen, groups, strict=True)):
        if can_travel(job) and not archive_is_known(group.jobs, group.lenders):
            record = _restored(job)
            if record is None:
                tasks[compile_action(job).key] = number
            else:
                made[number] = record
    if tasks:
        made |= _compiled(settings, {key: (number, chosen[number]) for key, number in tasks.items()}, watch)
    return [
        replace(group, made={job.archive: made[number]} if number in made else {})
        for number, (job, group) in enumerate(zip(chosen, groups, strict=True))
    ]


def _restored(job: CompileJob) -> ActionRecord | None:
    with trees_locked([job]):
        return restore_archive(job)


def _compiled(
    settings: FarmSettings, jobs: Mapping[str, tuple[int, CompileJob]], watch: Progress
) -> dict[int, ActionRecord]:
    """Compile ``jobs``, by the key of their action, on the farm; return how each was made, by its number."""
    watch.expect(len(jobs))

    def sent() -> Iterator[FarmTask]:
        for _, job in jobs.values():
            watch.start(_shown(job))
            yield compile_task(job, compile_action(job))

    made: dict[int, ActionRecord] = {}
    errors: dict[int, MlfError] = {}
    with open_farm(settings, program_versions([])) as farm:
        for task, result in farm.run(sent()):
            number, job = jobs[task.key]
            if isinstance(result, MlfError):
                errors[number] = result
                watch.fail(_shown(job))
                continue
            with trees_locked([job]):
                made[number] = keep_archive(job, compile_action(job), result)
            watch.finish(_shown(job), f"compiled on {result.worker}")
    raise_first(errors, watch)
    return made


def _shown(job: CompileJob) -> Task:
    return Task("compile", job.title, job.target, model=job.model)


def make_tree(job: CompileJob, target: TargetJob) -> None:
    """Unpack the archive of ``job``, which has travelled to this worker, and write the common files of ``target``."""
    unpack_job(job)
    # Also writes the linker script of placed sections, which test firmware uses.
    finish_target(replace(target, models=(job,), others=()))


def tree_files(job: CompileJob, target: TargetJob) -> list[Path]:
    """Return the files that ``make_tree`` and test firmware on ``target`` need on a worker."""
    keys = target.runner
    own = [path for path in (keys.uart, keys.setup) if path] if keys else []
    return [job.archive, *target.part_files, *target.toolchain_files, *own]


def board_resource(target: TargetJob) -> dict[str, int]:
    """Return the resource of a worker that has the device of ``target``; none for boards that are emulated."""
    return {f"board:{target.name}": 1} if target.runner else {}


def programs_of(target: TargetJob) -> Iterator[str]:
    """Yield the programs whose versions decide what test firmware on ``target`` is and does."""
    if target.toolchain is None:
        yield "gcc"
        return
    row = cpu_of_toolchain(target.toolchain)
    if row is not None:
        yield from {compiler_program(row[0], GCC), compiler_program(*row)}
    if target.run_board is not None and target.runner is None:
        yield target.run_board.emulator
