"""Count the instructions of each operator on emulated boards, and model its cycles."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.archive import open_archive
from mlfbuild.core import read_bytes, sha256
from mlfbuild.jobs import (
    BUILD_FOLDER,
    FarmWork,
    ProfileJob,
    Progress,
    TargetJob,
    board_resource,
    make_tree,
    profile_jobs,
    programs_of,
    raise_first,
    run_on_farm,
    target_jobs,
    tree_files,
)
from mlfbuild.library import NpuFacts
from mlfbuild.project import DASK, Project
from mlfbuild.report import (
    MEASURED_RUNS,
    ImageProfile,
    ModelRun,
    nothing_to_profile,
    placed_extents,
    profile_image,
    profiles,
    runs_of,
)
from mlfbuild.runners import check_for_board
from mlfbuild.usecases.build import build_project
from mlfbuild.usecases.run_firmware import chosen_image
from mlfbuild.usecases.verify import without_runners


def profile_models(
    project: Project,
    targets: Sequence[str] = (),
    models: Sequence[str] = (),
    *,
    frozen: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
    runs: int = MEASURED_RUNS,
    emulator: bool = False,
) -> list[ModelRun]:
    """Build the selected models (by default all) and run each once on its target's board.

    On the device of a target, ``runs`` runs are measured, unless only the ``emulator`` is used.
    Budgets are not checked. Raises as ``build_project`` and ``report.profiles``.
    """
    chosen = target_jobs(project, targets, models)
    lenders = target_jobs(project)
    built = build_project(chosen, lenders=lenders, jobs=jobs, progress=progress, locked=project if frozen else None)
    chosen_targets = without_runners(built.targets) if emulator else built.targets
    with_devices = [target for target in chosen_targets if target.npu is None]
    if not with_devices and built.targets:
        return []  # nothing emulates an NPU
    if project.jobs.engine == DASK and not any(target.providers for target in with_devices):
        return _on_farm(project, with_devices, jobs, progress or Progress(), runs)
    return list(profiles(project, with_devices, progress, runs))


@dataclass(frozen=True)
class NpuRun:
    """The estimate of Vela for a model of a target with an NPU."""

    target: str
    model: str
    module: str
    facts: NpuFacts


def npu_estimates(project: Project, targets: Sequence[str] = (), models: Sequence[str] = ()) -> list[NpuRun]:
    """Return Vela's estimates in the archives of the selected models, which have been built."""
    return [
        NpuRun(target.name, job.model, module.name, module.npu)
        for target in target_jobs(project, targets, models)
        for job in target.models
        if target.npu is not None
        for module in open_archive(job.archive).modules
        if module.npu is not None
    ]


SECONDS_AN_IMAGE = 120.0
"""Time limit of the runs of an image, by default."""


def profile_in(
    project: Project,
    image: Path,
    targets: Sequence[str] = (),
    models: Sequence[str] = (),
    *,
    frozen: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
    runs: int = MEASURED_RUNS,
    timeout: float = SECONDS_AN_IMAGE,
) -> ImageProfile:
    """Run the firmware ``image`` on the emulated board of its target and count the code between its marks.

    The target is that of ``targets``, or the only one. Its selected models are built, for the names of their operators;
    whether they are those in the image is not checked. ``runs`` and ``timeout`` (seconds) are those of
    ``profile_image``. Raises ``UsageError`` for several targets, ``CheckFailedError`` for one without a board,
    ``UnsupportedModelError`` if the image is for another core or board, and as ``build_project`` and ``profile_image``.
    """
    target = chosen_image(project, None, targets, image).target
    board = target.run_board
    if board is None:
        raise nothing_to_profile([target.name], project.path)
    check_for_board(image, target.cpu, board)
    chosen = target_jobs(project, [target.name], models)
    lenders = target_jobs(project)
    built = build_project(chosen, lenders=lenders, jobs=jobs, progress=progress, locked=project if frozen else None)
    found = [job for each in built.targets for job in profile_jobs(project, each, project.root / BUILD_FOLDER)]
    modules = {job.model.model: open_archive(job.model.archive).modules for job in found}
    # Sections that several models share are one place.
    places = list(dict.fromkeys(place for job in found for place in placed_extents(job, image)))
    return profile_image(image, target.name, board, modules, runs, timeout, target.mcu, places)


def _on_farm(
    project: Project, targets: Sequence[TargetJob], workers: int, watch: Progress, runs: int
) -> list[ModelRun]:
    """Profile each model on a worker of the farm; raises the first error in the order of the models."""
    from mlfbuild.farm import FarmResult, FarmSettings, FarmTask

    jobs = [job for target in targets for job in profile_jobs(project, target, project.root / BUILD_FOLDER)]
    if not jobs:
        raise nothing_to_profile([target.name for target in targets], project.path)
    found: list[list[ModelRun]] = [[] for _ in jobs]

    def work_of(number: int, job: ProfileJob) -> FarmWork:
        task = FarmTask(
            key=sha256(read_bytes(job.model.archive, "archive")),
            title=f"profile {job.model.title}",
            function=f"{__name__}:profile_here",
            argument=(job, f"{project.path}: targets.{job.target.name}.runner", runs),
            root=project.root,
            files=[*job.vectors.values(), *tree_files(job.model, job.target)],
            resources=board_resource(job.target),
        )

        def end(result: FarmResult) -> None:
            found[number] = pickle.loads(result.outputs["runs"])  # noqa: S301 - as Dask does with all results
            watch.finish(shown, f"profiled on {result.worker}")

        shown = job.model.task("profile")
        return FarmWork(task, shown, end)

    works = [work_of(number, job) for number, job in enumerate(jobs)]
    watch.expect(len(works))
    programs = {name for job in jobs for name in programs_of(job.target)}
    errors = run_on_farm(FarmSettings(project.jobs.address, workers), works, watch, programs)
    raise_first(errors, watch)
    return [run for runs_of_job in found for run in runs_of_job]


def profile_here(argument: tuple[ProfileJob, str, int]) -> dict[str, bytes]:
    """Profile the model of a job that has travelled to this worker; return its runs as a pickle."""
    job, place, runs = argument
    make_tree(job.model, job.target)
    return {"runs": pickle.dumps(runs_of(job, place, runs))}


def not_profiled(targets: Sequence[TargetJob]) -> list[str]:
    """Return a line for each of ``targets`` that ``profile_models`` omits, if it does not omit all of them."""
    omitted = [target.name for target in targets if target.run_board is None and target.npu is None]
    if len(omitted) == len(targets):
        return []
    return [f"target {name} has no board that QEMU emulates, and no mcu (add one)" for name in omitted]
