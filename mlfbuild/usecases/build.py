"""Build every model of the selected targets, then every firmware."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import MlfError, OnProgress, counted, no_progress
from mlfbuild.jobs import (
    COMPILED,
    COPIED,
    UP_TO_DATE,
    ActionRecord,
    Compiled,
    CompileJob,
    FirmwareJob,
    Progress,
    SharedArchive,
    TargetJob,
    Task,
    check_target,
    compile_once,
    compiled_of,
    cross_build,
    did_something,
    finish_target,
    is_current,
    map_in_workers,
    raise_first,
    shared_archives,
    target_dependencies,
    trees_locked,
    unpack_job,
    watched,
)
from mlfbuild.project import DASK, Budget, JobsKeys, Project

if TYPE_CHECKING:
    from mlfbuild.report import ImageSizes, Usage

# Names of edited files in the result of a step, which is one line; how many more there are follows as a number.
_SHOWN = 3
_COMPILING = "compiling"
"""The first step of a job."""
_NOTICE = "note: "
"""Begins what is not a step: what the cache could not do, which changes no result."""


@dataclass(frozen=True)
class ModelResult:
    """One model built for one target."""

    job: CompileJob
    origin: str
    """The origin of its archive: ``compiled``, ``copied``, or the cache ``local`` or ``remote``; empty if unchanged."""
    written: int
    """Number of files of the unpacked tree that were written because they were new, changed or damaged."""
    edited: tuple[str, ...] = ()
    """The written files that had been edited by hand."""
    made: Compiled | None = None
    """Its sizes, if it or a model with the same archive was compiled."""

    @property
    def compiled(self) -> bool:
        """Whether the compiler ran for this model."""
        return self.origin == COMPILED

    @property
    def notes(self) -> tuple[str, ...]:
        """The compiler's remarks on the network, if its archive is new here and no copy."""
        return self.made.notes if self.made and self.origin not in ("", COPIED) else ()


@dataclass(frozen=True)
class BuildReport:
    """The result of a build, including everything that was up to date."""

    targets: tuple[TargetJob, ...]
    models: tuple[ModelResult, ...]
    firmware: tuple[FirmwareJob, ...]
    images: tuple[ImageSizes, ...] = ()
    """Those of ``firmware`` that were linked now, for a target with flash and RAM."""

    def usages(self, budgets: Mapping[str, Budget], *, everything: bool = False) -> Iterator[Usage]:
        """Yield what compiled models and linked images take, or all of them if ``everything`` is set.

        ``budgets`` are those of models. Targets for this machine have neither flash nor an arena that matters.
        Raises as ``open_archive`` and ``image_sizes`` if ``everything`` is set.
        """
        from mlfbuild.report import usages

        targets = {target.name: target for target in self.targets if target.toolchain is not None}
        for result in self.models:
            job, made = result.job, result.made
            if job.target in targets and (made is not None or everything):
                made = made or compiled_of(job)
                sizes = {"arena": made.workspace, "constants": made.constants}
                yield from usages(job.title, sizes, targets[job.target], budgets.get(job.model, Budget()))
        read = {image.job.elf: image for image in self.images if image.job is not None}
        for firmware in self.firmware:
            if firmware.target.toolchain is not None and (firmware.elf in read or everything):
                image = (read.get(firmware.elf) or _reader(firmware)()).image
                yield from usages(
                    firmware.title, {"flash": image.flash, "RAM": image.ram}, firmware.target, firmware.budget
                )


def build_project(
    targets: Sequence[TargetJob],
    firmware: Sequence[FirmwareJob] = (),
    *,
    lenders: Sequence[TargetJob] = (),
    jobs: int = 1,
    progress: Progress | None = None,
    locked: Project | None = None,
    toolchains: bool = True,
    recheck: int = 0,
) -> BuildReport:
    """Compile and unpack models that are out of date, ``jobs`` in parallel, then build ``firmware``.

    Nothing is built for ``lenders``, but an archive that an earlier build made for one of them is copied instead of
    compiled again. With ``locked``, build what the lock file of that project lists: raise ``DriftError`` if models,
    archives or (if ``toolchains``) toolchains differ from it. ``recheck`` of the archives that a farm compiles are also
    compiled here and compared: raise ``CheckFailedError`` if one differs.

    The usual call builds a part of a project and lets all other targets lend their archives::

        chosen = target_jobs(project, ["m4"])
        build_project(chosen, firmware_jobs(project, chosen), lenders=target_jobs(project), jobs=4)

    Raises the first error of any step, in the order of the targets and models. Results that are finished stay, and a
    model that is being compiled when another one fails is compiled to its end.
    """
    watch = progress or Progress()
    if locked is not None:
        from mlfbuild.usecases.lock.frozen import freeze  # reads lock files, which most builds do not

        targets = freeze(locked, targets, lenders=lenders, jobs=jobs, progress=watch, toolchains=toolchains)
    watch.expect(sum(len(target.models) for target in targets) + len(firmware))
    models = _build_models(targets, lenders, jobs, watch, recheck)
    for target in targets:
        _finish(target, watch)
    return BuildReport(tuple(targets), models, tuple(firmware), tuple(_build_images(firmware, jobs, watch, recheck)))


def build_firmware(
    job: FirmwareJob,
    definitions: Sequence[str] = (),
    jobs: int | None = None,
    on_progress: OnProgress = no_progress,
    show: Callable[[str], None] = lambda _: None,
    read: Callable[[], ImageSizes] | None = None,
) -> str:
    """Build the firmware, check its link and its budgets; return what CMake and Ninja printed.

    ``on_progress`` receives the progress, ``show`` a line about what cannot be checked. ``read`` returns the sizes of
    the image; it is called if they are needed. Raises as ``cross_build``,
    ``LinkFaultsError`` and ``OverBudgetError``.
    """
    output = cross_build(job, definitions, jobs, on_progress)
    _check_linked(job, on_progress, show, read or _reader(job))
    return output


def _check_linked(
    job: FirmwareJob, on_progress: OnProgress, show: Callable[[str], None], read: Callable[[], ImageSizes]
) -> None:
    from mlfbuild.report.budgets import check_budgets  # reads ELF files, which builds of models do not need
    from mlfbuild.report.link import check_link

    unchecked = check_link(job, read)
    check_budgets(job, read, on_progress)
    if unchecked:
        show(unchecked)


def _reader(job: FirmwareJob) -> Callable[[], ImageSizes]:
    """Return a function that reads the sizes of the job's image once, which takes up to a third of a second."""

    def read() -> ImageSizes:
        from mlfbuild.report import image_sizes

        return image_sizes(job)

    return functools.cache(read)


def _build_models(
    targets: Sequence[TargetJob],
    lenders: Sequence[TargetJob],
    jobs: int,
    watch: Progress,
    recheck: int,
) -> tuple[ModelResult, ...]:
    groups = shared_archives((job for target in targets for job in target.models), lenders)
    order = {group.jobs[0].archive: number for number, group in enumerate(groups)}
    results: dict[Path, ModelResult] = {}
    errors: dict[int, MlfError] = {}

    def follow(group: SharedArchive, step: tuple[int, str]) -> None:
        number, doing = step
        task = tasks[group.jobs[number].archive]
        if doing.startswith(_NOTICE):
            watch.output(task, doing)
            return
        if doing == _COMPILING:
            watch.start(task)
        watch.step(task, doing)

    current: list[SharedArchive] = []
    stale: list[SharedArchive] = []
    for group in groups:
        (current if _is_current(group) else stale).append(group)
    where = stale[0].jobs[0].jobs if stale else JobsKeys()
    if where.engine == DASK:
        stale = _compiled_on_farm(where.address, stale, jobs, watch, recheck)
    # What a farm has compiled was shown as such.
    tasks = {
        job.archive: job.task("unpack" if _is_from_farm(group) else "compile")
        for group in (*current, *stale)
        for job in group.jobs
    }
    # Models that are up to date come first and in this process: their trees are checked, and the user sees at once what
    # is done. If one of them fails, nothing is compiled, because the build fails anyway.
    done = (
        pair
        for batch, workers in ((current, 1), (stale, jobs))  # a worker takes longer to start than to find nothing to do
        for pair in map_in_workers(_build_shared, () if errors else batch, workers, follow)
    )
    for group, built in done:
        if isinstance(built, MlfError):
            # By the position of the group, not by the time: the error that a build reports does not depend on which
            # worker was faster.
            errors[order[group.jobs[0].archive]] = built
            for job in group.jobs:
                watch.fail(tasks[job.archive])
            continue
        for result in built:
            origin = "" if _is_from_farm(group) else result.origin
            watch.finish(tasks[result.job.archive], _words(origin, result.written, result.edited))
            results[result.job.archive] = result
    raise_first(errors, watch)
    return tuple(results[job.archive] for target in targets for job in target.models)


def _compiled_on_farm(
    address: str, groups: list[SharedArchive], jobs: int, watch: Progress, recheck: int
) -> list[SharedArchive]:
    from mlfbuild.farm import FarmSettings
    from mlfbuild.jobs import make_on_farm

    first = groups[0].jobs[0].task("compile")
    settings = FarmSettings(address, jobs)
    return make_on_farm(settings, groups, watch, lambda text: watch.output(first, _NOTICE + text), recheck)


def _is_current(group: SharedArchive) -> bool:
    """Return whether all archives of ``group`` are up to date; a build checks again with the locks of its trees."""
    try:
        return all(map(is_current, group.jobs))
    except MlfError:  # building the group reports it, as the error of its models
        return False


def _is_from_farm(group: SharedArchive) -> bool:
    return any(record.origin == COMPILED for record in group.made.values())


def _build_shared(group: SharedArchive, send: Callable[[tuple[int, str]], None]) -> list[ModelResult]:
    """Make one archive for a group of jobs, and unpack it for each of them."""
    # All models of the group are shown as being compiled, although one compiler run makes the archive of all.
    for number in range(len(group.jobs)):
        send((number, _COMPILING))
    # Before it is decided whether to compile: another process may be making the same archive or tree.
    with trees_locked(group.jobs):
        records = {**group.made, **compile_once(group.jobs, group.lenders, lambda text: send((0, _NOTICE + text)))}
        trees = []
        for number, job in enumerate(group.jobs):
            send((number, "unpacking"))
            trees.append(unpack_job(job))  # writes nothing if the tree is complete and of this archive
    made = compiled_of(group.jobs[0]) if any(record.origin != COPIED for record in records.values()) else None
    return [
        ModelResult(job, _origin(records, job), len(tree.written), tree.edited, made)
        for job, tree in zip(group.jobs, trees, strict=True)
    ]


def _origin(records: Mapping[Path, ActionRecord], job: CompileJob) -> str:
    return records[job.archive].origin if job.archive in records else ""


def _finish(target: TargetJob, watch: Progress) -> None:
    # Compares the module names of all models of the target, which are known when their trees exist.
    check_target(target)
    with trees_locked([target]):
        result = finish_target(target, target_dependencies(target))
    if result.edited:
        task = Task("write", str(target.tree), target.name)
        watch.start(task)
        watch.finish(task, _words("", len(result.written), result.edited))


def _build_images(firmware: Sequence[FirmwareJob], jobs: int, watch: Progress, recheck: int) -> Iterator[ImageSizes]:
    """Build the images, on a farm if there is one; yield the sizes of those that were linked now."""
    where = firmware[0].target.models[0].jobs if firmware and firmware[0].target.models else JobsKeys()
    linked: dict[Path, ImageSizes | None] = {}
    if where.engine == DASK:
        from mlfbuild.farm import FarmSettings
        from mlfbuild.jobs import link_on_farm

        def check(image: FirmwareJob, task: Task, new: bool) -> None:
            read = _reader(image)
            _check_linked(image, functools.partial(watch.step, task), functools.partial(watch.output, task), read)
            linked[image.elf] = read() if new and image.target.toolchain is not None else None

        link_on_farm(FarmSettings(where.address, jobs), firmware, watch, check, recheck)
    for image in firmware:
        sizes = linked[image.elf] if image.elf in linked else _build_image(image, jobs, watch)
        if sizes is not None:
            yield sizes


def _build_image(image: FirmwareJob, jobs: int, watch: Progress) -> ImageSizes | None:
    """Build the image; return its sizes if it was linked now."""
    read = _reader(image)
    task = Task("build", image.title, image.target.name, firmware=image.name)
    with watched(watch, task):
        output = build_firmware(
            image,
            jobs=jobs,
            on_progress=functools.partial(watch.step, task),
            show=functools.partial(watch.output, task),
            read=read,
        )
    if "warning:" in output:
        watch.output(task, output)
    built = did_something(output)
    watch.finish(task, "built" if built else UP_TO_DATE)
    return read() if built and image.target.toolchain is not None else None


_ORIGINS = {COMPILED: "compiled", "local": "from the cache", "remote": "from the shared cache"}


def _words(origin: str, written: int, edited: Sequence[str]) -> str:
    files = f"{counted(written, 'file')} written"
    if edited:
        more = f" and {len(edited) - _SHOWN} more" if len(edited) > _SHOWN else ""
        files += f"; restored after manual edits: {', '.join(edited[:_SHOWN])}{more}"
    return f"{_ORIGINS[origin]}, {files}" if origin in _ORIGINS else files if written else UP_TO_DATE
