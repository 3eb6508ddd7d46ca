"""Compile the models of a build on a farm, all at once, and make their trees on workers that run them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.core import MlfError
from mlfbuild.farm import FarmResult, FarmSettings
from mlfbuild.jobs.actions import Action, ActionRecord
from mlfbuild.jobs.configure_time import SharedArchive
from mlfbuild.jobs.farm_work import FarmWork, run_on_farm
from mlfbuild.jobs.locks import Notify, trees_locked
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
from mlfbuild.jobs.progress import Progress, raise_first
from mlfbuild.jobs.quantized_files import make_quantized
from mlfbuild.jobs.travel import REASON, compile_task, stays
from mlfbuild.project import JobsKeys
from mlfbuild.targets import GCC, compiler_program, cpu_of_toolchain


def make_on_farm(
    settings: FarmSettings, groups: Sequence[SharedArchive], watch: Progress, notify: Notify, recheck: int = 0
) -> list[SharedArchive]:
    """Compile on a farm one archive for each of ``groups`` whose job can travel, and that is neither here nor cached.

    Return the groups with what was made; archives are written with their records, so that a build then finds them up to
    date. ``recheck`` is that of ``run_on_farm``. Raises the first error in the order of the groups, after all tasks
    have ended; archives that were made stay.
    """
    archives = _Archives(groups, watch, notify)
    errors = run_on_farm(settings, archives.works(), watch, recheck=recheck)
    raise_first({archives.numbers[place]: error for place, error in errors.items()}, watch)
    return [
        replace(group, jobs=[replace(job, jobs=JobsKeys()) for job in group.jobs])  # which asks no worker again
        if number in archives.left
        else replace(group, made=archives.made.get(number, {}))
        for number, group in enumerate(groups)
    ]


class _Archives:
    """The results of ``groups``: records of archives by the number of the group."""

    def __init__(self, groups: Sequence[SharedArchive], watch: Progress, notify: Notify) -> None:
        self.made: dict[int, dict[Path, ActionRecord]] = {}
        self.left: set[int] = set()
        """The groups that a worker leaves to this machine."""
        self.numbers: list[int] = []
        """The number of the group of each of the works."""
        self._groups, self._watch, self._notify = groups, watch, notify

    def works(self) -> Iterator[FarmWork]:
        """Yield the tasks of archives that are neither here nor in the cache, from which the others are taken."""
        keys: set[str] = set()
        jobs = [least_ram(group.jobs) for group in self._groups]
        # The archives of one model one after the other, because they share its file.
        for number, job in sorted(enumerate(jobs), key=lambda pair: pair[1].request.source):
            group = self._groups[number]
            with contextlib.suppress(MlfError):  # building the group reports it
                if stays(job):
                    continue
                if job.quantize is not None:  # here: a worker may lack the engine
                    make_quantized(job.quantize, self._notify)
                action = compile_action(job)
                if archive_is_known(action, (*group.jobs, *group.lenders)):
                    continue
                with trees_locked([job]):
                    record = restore_archive(job, action, self._notify)
                if record is not None:
                    self.made[number] = {job.archive: record}
                elif action.key not in keys:  # a copy of a model file has the same, and takes it from the cache
                    keys.add(action.key)
                    task = compile_task(job, action)
                    self._watch.expect(1)
                    self.numbers.append(number)
                    yield FarmWork(task, job.task("compile"), functools.partial(self._keep, number, job, action))

    def _keep(self, number: int, job: CompileJob, action: Action, result: FarmResult) -> None:
        if REASON in result.outputs:
            self.left.add(number)
            reason = result.outputs[REASON].decode(errors="replace")
            self._watch.finish(job.task("compile"), f"left to this machine: {reason}")
            return
        with trees_locked([job]):
            self.made[number] = {job.archive: keep_archive(job, action, result, self._notify)}
        self._watch.finish(job.task("compile"), f"compiled on {result.worker}")


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
