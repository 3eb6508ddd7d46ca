"""Whether budgets of instructions hold: models run on their boards where something changed since they did."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.build import BUILD_FOLDER, FirmwareJob
from mlfbuild.core import (
    OverBudgetError,
    Tell,
    file_sha256,
    open_binary,
    package_fingerprint,
    sha256,
    tell_nobody,
    write_if_changed,
)
from mlfbuild.project import Project
from mlfbuild.targets import cpu_of_toolchain

if TYPE_CHECKING:
    from mlfbuild.report.instructions import Counts, ModelRun


@dataclass(frozen=True)
class _Record:
    """The last runs that were within all their budgets."""

    state: str = ""
    """All that decides them."""
    counts: Counts = field(default_factory=dict)


def exceeded_instructions(job: FirmwareJob, tell: Tell = tell_nobody) -> list[str]:
    """Return a line for each budget of instructions, of the job's image or a model in it, that a run exceeds.

    Nothing runs where there are none, or where nothing changed since they were found to hold. ``tell`` is told which
    model is counted. Raises as ``model_runs``.
    """
    if not job.budgeted_runs:
        return []
    path = job.build / ".mlfbuild-instructions.json"
    state = _state(job)
    if _recorded(path).state == state:
        return []
    from mlfbuild.report.runs import model_runs  # with what runs images: most builds need none of it

    runs: list[ModelRun] = []
    for each in job.budgeted_runs:
        tell(f"counting {each.model.model}", 0, 0)
        runs += model_runs(each)
    return _exceeded(runs, job.limits, path, state)


def check_profiles(project: Project, runs: Sequence[ModelRun]) -> None:
    """Raise ``OverBudgetError`` where one of ``runs`` takes more instructions than its model's budget allows."""
    budgets = {name: model.budget.instructions for name, model in project.models.items()}
    limits = {name: limit for name, limit in budgets.items() if limit is not None}
    lines = []
    for target in dict.fromkeys(run.target for run in runs):
        own = [run for run in runs if run.target == target]
        record = project.root / BUILD_FOLDER / "profile" / target / "within-budget.json"
        lines += [f"{target} on {own[0].profile.board}: {line}" for line in _exceeded(own, limits, record, "")]
    if lines:
        raise OverBudgetError("\n".join(lines))


def _exceeded(runs: Sequence[ModelRun], limits: Counts, path: Path, state: str) -> list[str]:
    """Return a line for each of ``limits`` that ``runs`` exceed; where there is none, record the runs in ``path``."""
    from mlfbuild.report.instructions import counts_of, exceeded

    before = _recorded(path).counts
    lines = list(exceeded(runs, limits, before))
    if not lines:
        counts = {name: count for name, count in counts_of(runs).items() if name or name in limits}
        record = {"state": state, "counts": {**before, **counts}}
        write_if_changed(path, json.dumps(record, sort_keys=True).encode())
    return lines


def _recorded(path: Path) -> _Record:
    try:
        found = json.loads(path.read_bytes())
        return _Record(str(found["state"]), {str(name): int(count) for name, count in found["counts"].items()})
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return _Record()


def _state(job: FirmwareJob) -> str:
    """Return the hash of the job's limits and of all that decides the runs held against them."""
    target = job.target
    parts = [json.dumps(job.limits, sort_keys=True), target.settings(), package_fingerprint()]
    for run in job.budgeted_runs:
        parts.append(f"{run.model.model} {_hash(run.model.archive)}")
        parts += [f"{module}: {path.name} {_hash(path)}" for module, path in sorted(run.vectors.items())]
    parts += [_hash(path) for path in target.toolchain_files]
    if target.toolchain is not None and cpu_of_toolchain(target.toolchain) is None:
        parts.append(str(job.elf.stat().st_mtime_ns))  # what such a file includes is known to CMake alone
    return sha256("\n".join(parts).encode())


def _hash(path: Path) -> str:
    with open_binary(path, "file") as file:
        return file_sha256(file)
