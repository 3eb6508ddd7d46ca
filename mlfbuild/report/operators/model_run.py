"""A run of a module of a model, as reports and budgets use it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlfbuild.report.operators.operator_runs import OperatorRun

if TYPE_CHECKING:
    from mlfbuild.report.operators.profile import Profile


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

    @property
    def inputs_text(self) -> str:
        """The inputs, in words."""
        return f"the first case of {self.inputs}" if self.inputs else "zeros"


def counts_of(runs: Sequence[ModelRun]) -> dict[str, int]:
    """Return the instructions of each model, the sum of its modules; the empty name is the sum of all models."""
    counts = {"": sum(run.profile.instructions for run in runs)}
    for run in runs:
        counts[run.model] = counts.get(run.model, 0) + run.profile.instructions
    return counts
