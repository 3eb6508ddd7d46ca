"""Compile the models of a build on a farm, all at once, and make their trees on workers that run them."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild.core import CheckFailedError, MlfError, listed
from mlfbuild.farm import FarmResult, FarmSettings, FarmTask, open_farm, program_versions, run_here
from mlfbuild.jobs.actions import Action, ActionRecord
from mlfbuild.jobs.configure_time import SharedArchive
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
from mlfbuild.jobs.travel import can_travel, compile_task
from mlfbuild.targets import GCC, compiler_program, cpu_of_toolchain


def make_on_farm(
    settings: FarmSettings, groups: Sequence[SharedArchive], watch: Progress, notify: Notify, recheck: int = 0
) -> list[SharedArchive]:
    """Compile on a farm one archive for each of ``groups`` whose job can travel, and that is neither here nor cached.

    Return the groups with what was made; archives are written with their records, so that a build then finds them up to
    date. ``recheck`` of the results, those with the smallest keys, are also made here and compared before they are
    kept. Raises the first error in the order of the groups, after all tasks have ended; archives that were made stay.
    """
    work = _FarmWork(groups, watch, notify)
    waiting = work.tasks()
    if recheck:
        waiting = iter([*waiting])  # all keys must be known to choose the smallest
    first = next(waiting, None)
    if first is not None:  # what the cache has needs no cluster
        chosen = {*sorted(work.jobs)[:recheck]}
        with open_farm(settings, program_versions([])) as farm:
            for task, result in farm.run(work.started(itertools.chain([first], waiting))):
                work.end(task, result, task.key in chosen)
    raise_first(work.errors, watch)
    return [replace(group, made=work.made.get(number, {})) for number, group in enumerate(groups)]


class _FarmWork:
    """What is made of ``groups``: records of archives and errors by the number of the group."""

    def __init__(self, groups: Sequence[SharedArchive], watch: Progress, notify: Notify) -> None:
        self.jobs: dict[str, tuple[int, CompileJob, Action]] = {}
        """The key of a task -> its group, job and action."""
        self.made: dict[int, dict[Path, ActionRecord]] = {}
        self.errors: dict[int, MlfError] = {}
        self._groups, self._watch, self._notify = groups, watch, notify

    def tasks(self) -> Iterator[FarmTask]:
        """Yield the tasks of archives that are neither here nor in the cache, from which the others are taken."""
        for number, group in enumerate(self._groups):
            job = least_ram(group.jobs)
            with contextlib.suppress(MlfError):  # building the group reports it
                if not can_travel(job):
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
                elif action.key not in self.jobs:  # a copy of a model file has the same, and takes it from the cache
                    self.jobs[action.key] = number, job, action
                    yield compile_task(job, action)

    def started(self, tasks: Iterable[FarmTask]) -> Iterator[FarmTask]:
        """Yield ``tasks``, and report that they start."""
        for task in tasks:
            self._watch.expect(1)
            self._watch.start(self.jobs[task.key][1].task("compile"))
            yield task

    def end(self, task: FarmTask, result: FarmResult | MlfError, recheck: bool) -> None:
        """Keep the result of ``task``, after it was made here again if ``recheck`` is set."""
        number, job, action = self.jobs[task.key]
        try:
            if isinstance(result, MlfError):
                raise result
            if recheck:
                _compare(task, result)
            with trees_locked([job]):
                self.made[number] = {job.archive: keep_archive(job, action, result, self._notify)}
        except MlfError as error:
            self.errors[number] = error
            self._watch.fail(job.task("compile"))
        else:
            self._watch.finish(job.task("compile"), f"compiled on {result.worker}")


def _compare(task: FarmTask, result: FarmResult) -> None:
    """Raise ``CheckFailedError`` if ``task``, run here, has other outputs than the ``result`` of a worker."""
    with tempfile.TemporaryDirectory(prefix="mlfbuild-recheck-") as name:
        here = run_here(task, Path(name))
    other = [name for name in sorted({*here, *result.outputs}) if here.get(name) != result.outputs.get(name)]
    if other:
        raise CheckFailedError(
            "farm-result-differs",
            place=task.title,
            reason=f"{listed(other)} of worker {result.worker} differs from what this machine makes, and is not kept",
            hint="stop that worker, and build what it made again",
        )


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
