"""Count the instructions of each operator on emulated boards, and model its cycles."""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.jobs import Progress, TargetJob, target_jobs
from mlfbuild.project import Project
from mlfbuild.report import MEASURED_RUNS, ModelRun, profiles
from mlfbuild.usecases.build import build_project
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
    with_devices = without_runners(built.targets) if emulator else built.targets
    return list(profiles(project, with_devices, progress, runs))


def not_profiled(targets: Sequence[TargetJob]) -> list[str]:
    """Return a line for each of ``targets`` that ``profile_models`` omits, if it does not omit all of them."""
    omitted = [target.name for target in targets if target.run_board is None]
    if len(omitted) == len(targets):
        return []
    return [f"target {name} has no board that QEMU emulates, and no mcu (add one)" for name in omitted]
