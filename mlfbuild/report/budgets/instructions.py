"""Budgets of instructions: models run on their emulated boards if something changed since their last run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.build import BUILD_FOLDER, FirmwareJob, ProfileJob, Progress, Silent, TargetJob, profile_jobs
from mlfbuild.core import (
    Diagnostic,
    OverBudgetError,
    Tell,
    file_sha256,
    open_binary,
    package_fingerprint,
    tell_nobody,
)
from mlfbuild.project import Project
from mlfbuild.report.budgets.limits import largest, since_last
from mlfbuild.report.budgets.record import BudgetRecord, read_record, state_of
from mlfbuild.targets import cpu_of_toolchain

if TYPE_CHECKING:
    from mlfbuild.report.operators.model_run import ModelRun

_MEASURE = "instructions"


def exceeded_instructions(job: FirmwareJob, tell: Tell = tell_nobody) -> list[Diagnostic]:
    """Return each budget of instructions, of the job's image or a model in it, that a run exceeds.

    Nothing runs if there are no budgets, or if nothing changed since they were last checked and kept. ``tell`` receives
    the model that is being counted. Raises as ``model_runs``.
    """
    if not job.budgeted_runs:
        return []
    record, state = read_record(job.build / ".mlfbuild-instructions.json"), _state(job)
    if record.state == state:
        return []
    from mlfbuild.report.operators.runs import model_runs  # loads the emulator, which most builds do not need

    runs: list[ModelRun] = []
    for each in job.budgeted_runs:
        tell(f"counting {each.model.model}", 0, 0)
        runs += model_runs(each)
    return _checked(runs, job.limits, record, state)


def budgeted_jobs(project: Project, targets: Sequence[TargetJob], build: Path | None = None) -> list[ProfileJob]:
    """Return the runs of ``targets`` that decide whether budgets of instructions are kept.

    ``build`` is the output folder, as for ``target_jobs``. Targets without a board have no such budgets.
    """
    wanted = {name for name, model in project.models.items() if model.budget.instructions is not None}
    for firmware in project.firmware.values():
        wanted |= {*firmware.models} if firmware.budget.instructions is not None else set()
    folder = build or project.root / BUILD_FOLDER
    jobs = [job for target in targets for job in profile_jobs(project, target, folder)]
    return [job for job in jobs if job.model.model in wanted]


def check_instructions(project: Project, jobs: Sequence[ProfileJob], progress: Progress | None = None) -> None:
    """Run ``jobs``, whose models have been built, and raise as ``check_profiles`` and ``model_runs``."""
    if jobs:
        from mlfbuild.report.operators.runs import watched_runs  # loads the emulator

        check_profiles(project, [run for job in jobs for run in watched_runs(job, progress or Silent())])


def check_profiles(project: Project, runs: Sequence[ModelRun]) -> None:
    """Raise ``OverBudgetError`` if ``runs`` execute more instructions than a budget allows.

    Budgets of firmware count if ``runs`` has all models that it has for the target.
    """
    budgets = {name: model.budget.instructions for name, model in project.models.items()}
    limits = {name: limit for name, limit in budgets.items() if limit is not None}
    found = []
    for target in dict.fromkeys(run.target for run in runs):
        own = [run for run in runs if run.target == target]
        record = read_record(project.root / BUILD_FOLDER / "profile" / target / "within-budget.json")
        place = f"{target} on {own[0].profile.board}"
        found += [replace(each, place=f"{place}: {each.place}") for each in _checked(own, limits, record, "")]
        for firmware in project.firmware.values():
            models = {model.name for model in project.models_on(target, firmware.name)}
            theirs = [run for run in own if run.model in models]
            limit = firmware.budget.instructions if target in firmware.targets else None
            if limit is not None and models == {run.model for run in theirs}:
                over = excesses(theirs, {"": limit}, BudgetRecord(Path()))
                found += [replace(each, place=f"{firmware.name} for {place}: {each.place}") for each in over]
    if found:
        raise OverBudgetError(found)


def _checked(runs: Sequence[ModelRun], limits: Mapping[str, int], record: BudgetRecord, state: str) -> list[Diagnostic]:
    """Return each of ``limits`` that ``runs`` exceed; if there is none, record the runs."""
    from mlfbuild.report.operators.model_run import counts_of

    found = list(excesses(runs, limits, record))
    if not found:
        counts = {name: {_MEASURE: count} for name, count in counts_of(runs).items() if name or name in limits}
        record.write(state, {**record.taken, **counts})
    return found


def excesses(runs: Sequence[ModelRun], limits: Mapping[str, int], record: BudgetRecord) -> Iterator[Diagnostic]:
    """Yield each of ``limits`` that ``runs`` exceed, with the difference from the build in ``record``.

    The empty name in ``limits`` is the sum of all models of an image.
    """
    from mlfbuild.report.operators.model_run import counts_of

    counts = counts_of(runs)
    for name in [*filter(None, counts), ""]:
        count, limit = counts[name], limits.get(name)
        if limit is not None and count > limit:
            own = [run for run in runs if run.model == name]
            parts = [(operator.title, operator.instructions) for run in own for operator in run.operators]
            models = [(model, each) for model, each in counts.items() if model]
            inputs = " and ".join(dict.fromkeys(run.inputs_text for run in own)) if name else "one run of each model"
            yield Diagnostic(
                "instructions-over-budget",
                place=f"model {name}" if name else "the models of the image",
                reason=f"{count:,} instructions for {inputs}, {count - limit:,} over the budget of {limit:,}"
                f"{since_last(count, record.before(name, _MEASURE))}",
                hint=f"reduce the largest parts ({largest(parts if name else models)}; `mlfbuild profile` lists all), "
                "or raise the budget",
            )


def _state(job: FirmwareJob) -> str:
    """Return the hash of the job's limits and of everything that decides its runs."""
    target = job.target
    parts: list[object] = [job.limits, target.settings(), package_fingerprint()]
    for run in job.budgeted_runs:
        vectors = [(module, path.name, _hash(path)) for module, path in sorted(run.vectors.items())]
        parts.append([run.model.model, _hash(run.model.archive), vectors])
    parts += [_hash(path) for path in target.toolchain_files]
    if target.toolchain is not None and cpu_of_toolchain(target.toolchain) is None:
        parts.append(job.elf.stat().st_mtime_ns)  # only CMake knows which files a user's toolchain file includes
    return state_of(*parts)


def _hash(path: Path) -> str:
    with open_binary(path, "file") as file:
        return file_sha256(file)
