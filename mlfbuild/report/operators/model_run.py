"""A run of a module of a model, as reports and budgets use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlfbuild.report.operators.cycles import sum_of_cycles
from mlfbuild.report.operators.operator_runs import OperatorRun

if TYPE_CHECKING:
    from mlfbuild.report.operators.profile import Profile
    from mlfbuild.verify import CycleRuns


@dataclass(frozen=True)
class ModelRun:
    """One run of a module of a model on a board."""

    target: str
    model: str
    inputs: str
    """The vectors file whose first case was run; empty if the inputs were zeros."""
    profile: Profile
    operators: tuple[OperatorRun, ...]
    """The calls of the profile, each with its operator of the network."""
    measured: CycleRuns | None = None
    """Cycles that the device of the target measured."""

    @property
    def inputs_text(self) -> str:
        """The inputs, in words."""
        return f"the first case of {self.inputs}" if self.inputs else "zeros"


def figures_of(runs: Sequence[ModelRun]) -> dict[str, dict[str, int]]:
    """Return the figures of each model, the sum of its modules; the empty name has the sum of all models.

    Their keys are those of budgets of runs: instructions and, if they are modelled, cycles and latency in nanoseconds.
    """
    models = dict.fromkeys(run.model for run in runs)
    return {name: _figures([run for run in runs if name in {"", run.model}]) for name in ("", *models)}


def _figures(runs: Sequence[ModelRun]) -> dict[str, int]:
    figures = {"instructions": sum(run.profile.instructions for run in runs)}
    cycles = sum_of_cycles(run.profile.cycles for run in runs)
    part = runs[0].profile.part if runs else None
    if cycles is None or part is None:
        return figures
    return {**figures, "cycles": cycles.total, "latency": part.latency(cycles.total)}
