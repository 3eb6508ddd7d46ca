"""The whole way: every model of every chosen target, then every firmware."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.build import (
    UP_TO_DATE,
    CompileJob,
    FirmwareJob,
    Progress,
    Silent,
    TargetJob,
    Task,
    Twins,
    check_target,
    compile_once,
    finish_target,
    map_in_workers,
    raise_first,
    target_dependencies,
    twins,
    unpack_job,
    watched,
)
from mlfbuild.core import MlfError
from mlfbuild.usecases.firmware import build_firmware, did_something

_SHOWN = 3
_COMPILING = "compiling"
"""The first thing that is told of a job."""


@dataclass(frozen=True)
class ModelResult:
    """What became of one model for one target."""

    job: CompileJob
    compiled: bool
    written: int
    """Files of the unpacked tree that were written because they were new, changed, or damaged."""
    edited: tuple[str, ...] = ()
    """Those of them that somebody had edited."""


@dataclass(frozen=True)
class BuildReport:
    """What a build did; everything that was up to date is listed too."""

    models: tuple[ModelResult, ...]
    firmware: tuple[FirmwareJob, ...]


def build_project(
    targets: Sequence[TargetJob],
    firmware: Sequence[FirmwareJob] = (),
    *,
    lenders: Sequence[TargetJob] = (),
    jobs: int = 1,
    progress: Progress | None = None,
) -> BuildReport:
    """Compile and unpack what is out of date, ``jobs`` models at a time, then build ``firmware``.

    Nothing is made for ``lenders``, but an archive that an earlier build made for one is copied, not compiled again.
    Raises the first error of any step; what was finished before it stays and is not done again next time. Models that
    are being compiled when one fails are finished, too.
    """
    watch = progress or Silent()
    watch.expect(sum(len(target.models) for target in targets) + len(firmware))
    models = _build_models(targets, lenders, jobs, watch)
    for target in targets:
        _finish(target, watch)
    for image in firmware:
        _build_image(image, jobs, watch)
    return BuildReport(models, tuple(firmware))


def _build_models(
    targets: Sequence[TargetJob], lenders: Sequence[TargetJob], jobs: int, watch: Progress
) -> tuple[ModelResult, ...]:
    groups = twins((job for target in targets for job in target.models), lenders)
    tasks = {job.archive: model_task(job) for group in groups for job in group.jobs}
    results: dict[Path, ModelResult] = {}
    errors: dict[int, MlfError] = {}

    def told(group: Twins, what: tuple[int, str]) -> None:
        number, doing = what
        task = tasks[group.jobs[number].archive]
        if doing == _COMPILING:
            watch.start(task)
        watch.step(task, doing)

    for group, built in map_in_workers(_build_twins, groups, jobs, told):
        if isinstance(built, MlfError):
            errors[groups.index(group)] = built
            for job in group.jobs:
                watch.fail(tasks[job.archive])
            continue
        for result in built:
            watch.finish(tasks[result.job.archive], _words(result.compiled, result.written, result.edited))
            results[result.job.archive] = result
    raise_first(errors, watch)
    return tuple(results[job.archive] for target in targets for job in target.models)


def model_task(job: CompileJob) -> Task:
    """Return the task of compiling and unpacking a model for a target."""
    return Task("compile", job.title, job.target, model=job.model)


def _build_twins(group: Twins, tell: Callable[[tuple[int, str]], None]) -> list[ModelResult]:
    """Make one archive for all of a group, and the tree of each."""
    for number in range(len(group.jobs)):
        tell((number, _COMPILING))
    compiled = compile_once(group.jobs, group.lenders)
    trees = []
    for number, job in enumerate(group.jobs):
        tell((number, "unpacking"))
        trees.append(unpack_job(job))  # writes what differs: nothing, if the tree is whole and of this archive
    return [
        ModelResult(job, job is compiled, len(tree.written), tree.edited)
        for job, tree in zip(group.jobs, trees, strict=True)
    ]


def _finish(target: TargetJob, watch: Progress) -> None:
    check_target(target)
    result = finish_target(target, target_dependencies(target))
    if result.edited:
        task = Task("write", str(target.tree), target.name)
        watch.start(task)
        watch.finish(task, _words(compiled=False, written=len(result.written), edited=result.edited))


def _build_image(image: FirmwareJob, jobs: int, watch: Progress) -> None:
    task = Task("build", image.title, image.target.name, firmware=image.name)
    with watched(watch, task):
        output = build_firmware(image, jobs=jobs, tell=functools.partial(watch.step, task))
    if "warning:" in output:
        watch.output(task, output)
    watch.finish(task, "built" if did_something(output) else UP_TO_DATE)


def _words(compiled: bool, written: int, edited: Sequence[str]) -> str:
    files = f"{written} file{'' if written == 1 else 's'} written"
    if edited:
        more = f" and {len(edited) - _SHOWN} more" if len(edited) > _SHOWN else ""
        files += f"; somebody had edited {', '.join(edited[:_SHOWN])}{more}"
    return f"compiled, {files}" if compiled else files if written else UP_TO_DATE
