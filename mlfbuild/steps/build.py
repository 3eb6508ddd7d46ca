"""The whole way: every model of every chosen target, then every firmware."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.steps.clashes import check_target
from mlfbuild.steps.firmware import build_firmware
from mlfbuild.steps.jobs import CompileJob, FirmwareJob, TargetJob
from mlfbuild.steps.models import compile_once, finish_target, unpack_job
from mlfbuild.steps.progress import Progress, Silent
from mlfbuild.steps.twins import Twins, twins
from mlfbuild.steps.workers import map_in_workers

_SHOWN = 3


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


def build(
    targets: Sequence[TargetJob],
    firmware: Sequence[FirmwareJob] = (),
    *,
    lenders: Sequence[TargetJob] = (),
    jobs: int = 1,
    progress: Progress | None = None,
) -> BuildReport:
    """Compile and unpack what is out of date, ``jobs`` models at a time, then build ``firmware``.

    Nothing is made for ``lenders``, but an archive that an earlier build made for one is copied, not compiled again.
    Raises the first error of any step; what was finished before it stays and is not done again next time.
    """
    watch = progress or Silent()
    models = _build_models(targets, lenders, jobs, watch)
    for target in targets:
        check_target(target)
        result = finish_target(target)
        if result.edited:
            task = f"write {target.tree}"
            watch.start(task)
            watch.finish(task, _words(compiled=False, written=len(result.written), edited=result.edited))
    for image in firmware:
        task = f"build {image.name} for {image.target.name}"
        watch.start(task)
        build_firmware(image, jobs=jobs)
        watch.finish(task, str(image.elf))
    return BuildReport(models, tuple(firmware))


def _build_models(
    targets: Sequence[TargetJob], lenders: Sequence[TargetJob], jobs: int, watch: Progress
) -> tuple[ModelResult, ...]:
    todo = [job for target in targets for job in target.models]
    for job in todo:
        watch.start(f"compile {job.title}")
    results: dict[Path, ModelResult] = {}
    for _, built in map_in_workers(_build_twins, twins(todo, lenders), jobs):
        for result in built:
            watch.finish(f"compile {result.job.title}", _words(result.compiled, result.written, result.edited))
            results[result.job.archive] = result
    return tuple(results[job.archive] for job in todo)


def _build_twins(group: Twins) -> list[ModelResult]:
    """Make one archive for all of a group, and the tree of each."""
    compiled = compile_once(group.jobs, group.lenders)
    # Unpacking writes what differs: nothing, if the tree is whole and of this archive.
    trees = [unpack_job(job) for job in group.jobs]
    return [
        ModelResult(job, job is compiled, len(tree.written), tree.edited)
        for job, tree in zip(group.jobs, trees, strict=True)
    ]


def _words(compiled: bool, written: int, edited: Sequence[str]) -> str:
    files = f"{written} file{'' if written == 1 else 's'} written"
    if edited:
        more = f" and {len(edited) - _SHOWN} more" if len(edited) > _SHOWN else ""
        files += f"; somebody had edited {', '.join(edited[:_SHOWN])}{more}"
    return f"compiled, {files}" if compiled else files if written else "up to date"
