"""Budgets of instructions: what a run of a model may take, held against what one took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlfbuild.report.budgets.limits import change_text
from mlfbuild.report.operator_runs import OperatorRun

if TYPE_CHECKING:
    from mlfbuild.report.profile import Profile

_SHOWN = 3
"""Largest contributors that a message names."""
Counts = Mapping[str, int]
"""Instructions by the name of a model; by the empty name those of all models of an image."""


@dataclass(frozen=True)
class ModelRun:
    """One run of a module of a model on a board."""

    target: str
    model: str
    inputs: str
    """The file whose first case was run; empty where it was zeros."""
    profile: Profile
    operators: tuple[OperatorRun, ...]
    """The calls of the profile, with what the network says of them."""

    @property
    def of(self) -> str:
        """What it was run with, in words."""
        return f"the first case of {self.inputs}" if self.inputs else "zeros"


def counts_of(runs: Sequence[ModelRun]) -> dict[str, int]:
    """Return the instructions of each model, the sum of its modules, and of all of them."""
    counts = {"": sum(run.profile.instructions for run in runs)}
    for run in runs:
        counts[run.model] = counts.get(run.model, 0) + run.profile.instructions
    return counts


def budget_lines(runs: Sequence[ModelRun], limits: Counts) -> Iterator[str]:
    """Yield a line for each of ``limits`` with what ``runs`` took of it."""
    counts = counts_of(runs)
    for name, limit in limits.items():
        if name in counts:
            subject = f"model {name}" if name else "all models of the image"
            share = f"{100 * counts[name] / limit:.0f} %" if limit else "over"
            yield f"  {subject}: {counts[name]:,} of {limit:,} instructions ({share})"


def exceeded(runs: Sequence[ModelRun], limits: Counts, before: Counts) -> Iterator[str]:
    """Yield a line for each of ``limits`` that ``runs`` exceed.

    ``before`` is what an earlier build took: a line tells the difference, and what takes most.
    """
    counts = counts_of(runs)
    for model in filter(None, counts):
        limit = limits.get(model)
        if limit is not None and counts[model] > limit:
            own = [run for run in runs if run.model == model]
            of = " and ".join(dict.fromkeys(run.of for run in own))
            what = f"model {model} takes {counts[model]:,} instructions for {of}"
            yield _line(what, counts[model], limit, before.get(model), _largest_operators(own))
    limit = limits.get("")
    if limit is not None and counts[""] > limit:
        what = f"the models of the image take {counts['']:,} instructions, each in one run"
        largest = _largest([(model, count) for model, count in counts.items() if model])
        yield _line(what, counts[""], limit, before.get(""), largest)


def _line(what: str, count: int, limit: int, before: int | None, largest: str) -> str:
    change = "" if before is None else f", {change_text(count - before)} the last build that was within it"
    return (
        f"{what}, {count - limit:,} over the budget of {limit:,}{change}; most of it: {largest}; save there "
        "(`mlfbuild profile` shows all), or raise the budget"
    )


def _largest_operators(runs: Sequence[ModelRun]) -> str:
    """Return the largest contributors to the runs of one model."""
    return _largest([(operator.title, operator.instructions) for run in runs for operator in run.operators])


def _largest(counts: Sequence[tuple[str, int]]) -> str:
    ordered = sorted(counts, key=lambda item: -item[1])[:_SHOWN]
    return ", ".join(f"{name} {count:,}" for name, count in ordered)
