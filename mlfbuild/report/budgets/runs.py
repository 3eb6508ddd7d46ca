"""Budgets of instructions, cycles and latency: models run on emulated boards if something changed since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import (
    Diagnostic,
    OnProgress,
    OverBudgetError,
    file_sha256,
    no_progress,
    open_binary,
    package_fingerprint,
)
from mlfbuild.core.keys import duration_text, latency_text
from mlfbuild.jobs import BUILD_FOLDER, FirmwareJob, ProfileJob, Progress, TargetJob, profile_jobs, run_limits
from mlfbuild.project import Project
from mlfbuild.report.budgets.limits import BudgetRecord, largest, read_record, since_last, state_of
from mlfbuild.targets import cpu_of_toolchain

if TYPE_CHECKING:
    from mlfbuild.report.operators.operator_runs import ModelRun

Limits = Mapping[str, Mapping[str, int]]
"""Budgets of runs, by model and key; the empty name has those of the sum of all models of an image."""


def exceeded_runs(job: FirmwareJob, on_progress: OnProgress = no_progress) -> list[Diagnostic]:
    """Return each budget of runs, of the job's image or a model in it, that a run exceeds.

    Nothing runs if there are no budgets, or if nothing changed since they were last checked and kept. ``on_progress``
    receives the model that is being counted. Raises as ``model_runs``.
    """
    if not job.budgeted_runs:
        return []
    record = read_record(job.build / ".mlfbuild-instructions.json", _state(job))
    # Before the import below, which loads what runs images: most builds change nothing that runs depend on.
    if record.current:
        return []
    from mlfbuild.report.operators.runs import model_runs  # loads the emulator, which most builds do not need

    runs: list[ModelRun] = []
    for each in job.budgeted_runs:
        on_progress(f"counting {each.model.model}", 0, 0)
        runs += model_runs(each)
    return _checked(runs, job.limits, record)


def budgeted_jobs(project: Project, targets: Sequence[TargetJob], build: Path | None = None) -> list[ProfileJob]:
    """Return the runs of ``targets`` that decide whether budgets of runs are kept.

    ``build`` is the output folder, as for ``target_jobs``. Targets without a board and a microcontroller have no such
    budgets.
    """
    folder = build or project.root / BUILD_FOLDER
    found = []
    for target in targets:
        limited = {*run_limits({name: model.budget for name, model in project.models.items()}, target)}
        for firmware in project.firmware.values():
            limited |= {*firmware.models} if run_limits({"": firmware.budget}, target) else set()
        found += [job for job in profile_jobs(project, target, folder) if job.model.model in limited]
    return found


def check_runs(project: Project, jobs: Sequence[ProfileJob], progress: Progress | None = None) -> None:
    """Run ``jobs``, whose models have been built, and raise as ``check_profiles`` and ``model_runs``.

    ``jobs`` are those of ``budgeted_jobs``. ``progress`` shows each run; runs that are up to date are not repeated.
    """
    if jobs:
        from mlfbuild.report.operators.runs import watched_runs  # loads the emulator

        check_profiles(project, [run for job in jobs for run in watched_runs(job, progress or Progress())])


def check_profiles(project: Project, runs: Sequence[ModelRun]) -> None:
    """Raise ``OverBudgetError`` if ``runs`` take more than a budget allows.

    Budgets of firmware count if ``runs`` has all models that it has for the target.
    """
    limits = {name: model.budget.of_runs for name, model in project.models.items() if model.budget.of_runs}
    found = []
    for target in dict.fromkeys(run.target for run in runs):
        own = [run for run in runs if run.target == target]
        record = read_record(project.root / BUILD_FOLDER / "profile" / target / "within-budget.json")
        place = f"{target} on {own[0].profile.board}"
        found += [replace(each, place=f"{place}: {each.place}") for each in _checked(own, limits, record)]
        for firmware in project.firmware.values():
            models = {model.name for model in project.models_on(target, firmware.name)}
            theirs = [run for run in own if run.model in models]
            limit = firmware.budget.of_runs if target in firmware.targets else {}
            # The sum of some of its models says nothing about a budget for all.
            if limit and models == {run.model for run in theirs}:
                over = excesses(theirs, {"": limit}, BudgetRecord(Path()))
                found += [replace(each, place=f"{firmware.name} for {place}: {each.place}") for each in over]
    if found:
        raise OverBudgetError(found)


def _checked(runs: Sequence[ModelRun], limits: Limits, record: BudgetRecord) -> list[Diagnostic]:
    """Return each of ``limits`` that ``runs`` exceed; if there is none, record the runs."""
    from mlfbuild.report.operators.operator_runs import figures_of

    found = list(excesses(runs, limits, record))
    if not found:
        taken = {name: figures for name, figures in figures_of(runs).items() if name or name in limits}
        # Figures of models that were not run this time stay, for the next message.
        record.write({**record.taken, **taken})
    return found


def excesses(runs: Sequence[ModelRun], limits: Limits, record: BudgetRecord) -> Iterator[Diagnostic]:
    """Yield each of ``limits`` that ``runs`` exceed, with the difference from the build in ``record``.

    Runs without a microcontroller have no cycles, which are then not compared.
    """
    from mlfbuild.report.operators.operator_runs import figures_of

    figures = figures_of(runs)
    for name in [*filter(None, figures), ""]:
        for key, limit in limits.get(name, {}).items():
            found = figures[name].get(key)
            if found is not None and found > limit:
                own = [run for run in runs if name in {"", run.model}]
                yield _excess(own, name, key, found, limit, record.before(name, key))


def _excess(runs: Sequence[ModelRun], name: str, key: str, found: int, limit: int, before: int | None) -> Diagnostic:
    """Return the finding about ``found``, the figure ``key`` of the model ``name``, or of all models of the image."""
    text = latency_text if key == "latency" else "{:,}".format
    allowed = duration_text(limit) if key == "latency" else text(limit)
    part = runs[0].profile.part
    figure = text(found) if key == "latency" else f"{text(found)} {key}"
    if key != "instructions" and part is not None:
        figure += f" ({part.exactness}) on {part.title}"
    inputs = " and ".join(dict.fromkeys(run.inputs_text for run in runs)) if name else "one run of each model"
    place = f"model {name}" if name else "the models of the image"
    last = since_last(found, before, text, "less" if key == "latency" else "fewer")
    reason = f"{figure} for {inputs}, {text(found - limit)} over the budget of {allowed}{last}"
    hint = f"reduce the largest parts ({_largest(runs, name, key)}; `mlfbuild profile` lists all), or raise the budget"
    if key == "instructions":
        return Diagnostic("instructions-over-budget", place=place, reason=reason, hint=hint)
    if key == "cycles":
        return Diagnostic("cycles-over-budget", place=place, reason=reason, hint=hint)
    return Diagnostic("latency-over-budget", place=place, reason=reason, hint=hint)


def _largest(runs: Sequence[ModelRun], name: str, key: str) -> str:
    """Return the operators of a model, or the models of an image, with the most cycles or instructions."""
    from mlfbuild.report.operators.operator_runs import figures_of

    counted = "instructions" if key == "instructions" else "cycles"
    if not name:
        return largest([(model, figures[counted]) for model, figures in figures_of(runs).items() if model])
    operators = [operator for run in runs for operator in run.operators]
    if counted == "cycles":
        return largest([(each.title, each.cycles.total) for each in operators if each.cycles])
    return largest([(each.title, each.instructions) for each in operators])


def _state(job: FirmwareJob) -> str:
    """Return the hash of the job's limits and of everything that decides its runs."""
    target = job.target
    mcu = asdict(target.mcu) if target.mcu else None
    parts: list[object] = [job.limits, target.settings(), mcu, package_fingerprint()]
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
