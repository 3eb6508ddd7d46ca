"""Budgets that only a run can check: latency and what else the simulator or the device measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlfbuild.core import (
    MlfError,
    listed,
)
from mlfbuild.jobs import (
    Progress,
    TargetJob,
    run_budgets_on,
    target_jobs,
)
from mlfbuild.project import Project


def budget_error(project: Project, targets: Sequence[TargetJob], progress: Progress | None = None) -> MlfError | None:
    """Return why budgets of runs of the models of ``targets`` are not kept, or cannot be checked.

    Models with such a budget run on emulated boards, unless nothing changed since their last run. Their trees have been
    built.
    """
    from mlfbuild.report import budgets  # few projects have budgets

    try:
        budgets.check_runs(project, budgets.budgeted_jobs(project, targets), progress)
    except MlfError as error:
        return error
    return None


def unchecked_in_runs(project: Project, targets: Sequence[TargetJob]) -> list[str]:
    """Return a line for each budget, of a model of ``targets`` or of a firmware, that runs on them do not check."""
    models = dict.fromkeys(model.model for target in targets for model in target.models)
    crossed = {model.model for target in targets if target.toolchain is not None for model in target.models}
    checked = {(model.model, key) for target in targets for model in target.models for key in run_budgets_on(target)}
    lines = []
    for name in models:
        budget = project.models[name].budget
        kinds = [kind for kind in ("flash", "ram", "stack") if getattr(budget, kind) is not None]
        for key in (key for key in budget.of_runs if (name, key) not in checked):
            reason = _unchecked_reason(project, project.models[name].targets, key)
            lines.append(f"{key} of model {name} ({reason})")
        if kinds and name in crossed:
            lines.append(f"{listed(kinds)} of model {name} (links check that, such as those of `mlfbuild build`)")
    return [*lines, *_unchecked_of_firmware(project, targets)]


def _unchecked_of_firmware(project: Project, targets: Sequence[TargetJob]) -> Iterator[str]:
    for name, firmware in project.firmware.items():
        own = [target for target in targets if target.name in firmware.targets]
        for key in firmware.budget.of_runs if own else ():
            able = [target for target in own if key in run_budgets_on(target)]
            if not able:
                yield f"{key} of firmware {name} ({_unchecked_reason(project, firmware.targets, key)})"
            elif not any(_has_all_models(project, target, name) for target in able):
                command = f"run `mlfbuild profile --target {able[0].name}`"
                yield f"{key} of firmware {name} (not all of its models are selected; {command})"


def _has_all_models(project: Project, target: TargetJob, firmware: str) -> bool:
    selected = {model.model for model in target.models}
    return all(model.name in selected for model in project.models_on(target.name, firmware))


def _unchecked_reason(project: Project, targets: Sequence[str], key: str) -> str:
    """Return why the budget ``key`` is not checked, with the command that does for one of ``targets`` (names)."""
    other = next(target for target in target_jobs(project, targets) if key in run_budgets_on(target))
    lacking = "a board" if key == "instructions" else "an mcu"
    return f"no selected target has {lacking}; run `mlfbuild profile --target {other.name}`"
