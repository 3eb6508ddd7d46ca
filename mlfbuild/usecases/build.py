"""Build every model of the selected targets, then every firmware."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import MlfError, OnProgress, counted, no_progress
from mlfbuild.jobs import (
    UP_TO_DATE,
    CompileJob,
    FirmwareJob,
    Progress,
    SharedArchive,
    Silent,
    TargetJob,
    Task,
    check_target,
    compile_once,
    cross_build,
    did_something,
    finish_target,
    is_current,
    map_in_workers,
    notes_of,
    raise_first,
    shared_archives,
    target_dependencies,
    trees_locked,
    unpack_job,
    watched,
)
from mlfbuild.project import Project

# Names of edited files in the result of a step, which is one line; how many more there are follows as a number.
_SHOWN = 3
_COMPILING = "compiling"
"""The first step of a job."""


@dataclass(frozen=True)
class ModelResult:
    """One model built for one target."""

    job: CompileJob
    compiled: bool
    written: int
    """Number of files of the unpacked tree that were written because they were new, changed or damaged."""
    edited: tuple[str, ...] = ()
    """The written files that had been edited by hand."""
    notes: tuple[str, ...] = ()
    """The compiler's remarks on the network, if it was compiled."""


@dataclass(frozen=True)
class BuildReport:
    """The result of a build, including everything that was up to date."""

    targets: tuple[TargetJob, ...]
    models: tuple[ModelResult, ...]
    firmware: tuple[FirmwareJob, ...]


def build_project(
    targets: Sequence[TargetJob],
    firmware: Sequence[FirmwareJob] = (),
    *,
    lenders: Sequence[TargetJob] = (),
    jobs: int = 1,
    progress: Progress | None = None,
    locked: Project | None = None,
    toolchains: bool = True,
) -> BuildReport:
    """Compile and unpack models that are out of date, ``jobs`` in parallel, then build ``firmware``.

    Nothing is built for ``lenders``, but an archive that an earlier build made for one of them is copied instead of
    compiled again. With ``locked``, build what the lock file of that project lists: raise ``DriftError`` if models,
    archives or (if ``toolchains``) toolchains differ from it.

    The usual call builds a part of a project and lets all other targets lend their archives::

        chosen = target_jobs(project, ["m4"])
        build_project(chosen, firmware_jobs(project, chosen), lenders=target_jobs(project), jobs=4)

    Raises the first error of any step, in the order of the targets and models. Results that are finished stay, and a
    model that is being compiled when another one fails is compiled to its end.
    """
    watch = progress or Silent()
    if locked is not None:
        from mlfbuild.usecases.lock import freeze  # reads lock files, which most builds do not

        targets = freeze(locked, targets, lenders=lenders, jobs=jobs, progress=watch, toolchains=toolchains)
    watch.expect(sum(len(target.models) for target in targets) + len(firmware))
    models = _build_models(targets, lenders, jobs, watch)
    for target in targets:
        _finish(target, watch)
    for image in firmware:
        _build_image(image, jobs, watch)
    return BuildReport(tuple(targets), models, tuple(firmware))


def build_firmware(
    job: FirmwareJob,
    definitions: Sequence[str] = (),
    jobs: int | None = None,
    on_progress: OnProgress = no_progress,
    show: Callable[[str], None] = lambda _: None,
) -> str:
    """Build the firmware, check its link and its budgets; return what CMake and Ninja printed.

    ``on_progress`` receives the progress, ``show`` a line about what cannot be checked. Raises as ``cross_build``,
    ``LinkFaultsError`` and ``OverBudgetError``.
    """
    output = cross_build(job, definitions, jobs, on_progress)
    from mlfbuild import report  # reads ELF files, which builds of models do not need
    from mlfbuild.report.budgets import check_budgets
    from mlfbuild.report.link import check_link

    read = functools.cache(lambda: report.image_sizes(job))  # takes up to a third of a second
    unchecked = check_link(job, read)
    check_budgets(job, read, on_progress)
    if unchecked:
        show(unchecked)
    return output


def _build_models(
    targets: Sequence[TargetJob], lenders: Sequence[TargetJob], jobs: int, watch: Progress
) -> tuple[ModelResult, ...]:
    groups = shared_archives((job for target in targets for job in target.models), lenders)
    tasks = {job.archive: _model_task(job) for group in groups for job in group.jobs}
    results: dict[Path, ModelResult] = {}
    errors: dict[int, MlfError] = {}

    def follow(group: SharedArchive, step: tuple[int, str]) -> None:
        number, doing = step
        task = tasks[group.jobs[number].archive]
        if doing == _COMPILING:
            watch.start(task)
        watch.step(task, doing)

    current: list[SharedArchive] = []
    stale: list[SharedArchive] = []
    for group in groups:
        (current if _is_current(group) else stale).append(group)
    # Models that are up to date come first and in this process: their trees are checked, and the user sees at once what
    # is done. If one of them fails, nothing is compiled, because the build fails anyway.
    for batch, workers in ((current, 1), (stale, jobs)):  # a worker takes longer to start than to find nothing to do
        for group, built in map_in_workers(_build_shared, () if errors else batch, workers, follow):
            if isinstance(built, MlfError):
                # By the position of the group, not by the time: the error that a build reports does not depend on which
                # worker was faster.
                errors[groups.index(group)] = built
                for job in group.jobs:
                    watch.fail(tasks[job.archive])
                continue
            for result in built:
                watch.finish(tasks[result.job.archive], _words(result.compiled, result.written, result.edited))
                results[result.job.archive] = result
    raise_first(errors, watch)
    return tuple(results[job.archive] for target in targets for job in target.models)


def _is_current(group: SharedArchive) -> bool:
    """Return whether all archives of ``group`` are up to date; a build checks again with the locks of its trees."""
    try:
        return all(map(is_current, group.jobs))
    except MlfError:  # building the group reports it, as the error of its models
        return False


def _model_task(job: CompileJob) -> Task:
    return Task("compile", job.title, job.target, model=job.model)


def _build_shared(group: SharedArchive, send: Callable[[tuple[int, str]], None]) -> list[ModelResult]:
    """Make one archive for a group of jobs, and unpack it for each of them."""
    # All models of the group are shown as being compiled, although one compiler run makes the archive of all.
    for number in range(len(group.jobs)):
        send((number, _COMPILING))
    # Before it is decided whether to compile: another process may be making the same archive or tree.
    with trees_locked(group.jobs):
        compiled = compile_once(group.jobs, group.lenders)
        trees = []
        for number, job in enumerate(group.jobs):
            send((number, "unpacking"))
            trees.append(unpack_job(job))  # writes nothing if the tree is complete and of this archive
    notes = () if compiled is None else notes_of(compiled)
    return [
        ModelResult(job, job is compiled, len(tree.written), tree.edited, notes if job is compiled else ())
        for job, tree in zip(group.jobs, trees, strict=True)
    ]


def _finish(target: TargetJob, watch: Progress) -> None:
    # Compares the module names of all models of the target, which are known when their trees exist.
    check_target(target)
    with trees_locked([target]):
        result = finish_target(target, target_dependencies(target))
    if result.edited:
        task = Task("write", str(target.tree), target.name)
        watch.start(task)
        watch.finish(task, _words(compiled=False, written=len(result.written), edited=result.edited))


def _build_image(image: FirmwareJob, jobs: int, watch: Progress) -> None:
    task = Task("build", image.title, image.target.name, firmware=image.name)
    with watched(watch, task):
        output = build_firmware(
            image,
            jobs=jobs,
            on_progress=functools.partial(watch.step, task),
            show=functools.partial(watch.output, task),
        )
    if "warning:" in output:
        watch.output(task, output)
    watch.finish(task, "built" if did_something(output) else UP_TO_DATE)


def _words(compiled: bool, written: int, edited: Sequence[str]) -> str:
    files = f"{counted(written, 'file')} written"
    if edited:
        more = f" and {len(edited) - _SHOWN} more" if len(edited) > _SHOWN else ""
        files += f"; restored after manual edits: {', '.join(edited[:_SHOWN])}{more}"
    return f"compiled, {files}" if compiled else files if written else UP_TO_DATE
