"""All budgets of a firmware image: flash, RAM, stack, and runs of its models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mlfbuild.core import OnProgress, OverBudgetError, no_progress
from mlfbuild.jobs import FirmwareJob
from mlfbuild.report.budgets.runs import exceeded_runs
from mlfbuild.report.budgets.sizes import exceeded_sizes
from mlfbuild.report.budgets.stack import exceeded_stacks

if TYPE_CHECKING:
    from mlfbuild.report.sizes.images import ImageSizes


def check_budgets(job: FirmwareJob, read: Callable[[], ImageSizes], on_progress: OnProgress = no_progress) -> None:
    """Raise ``OverBudgetError`` if the job's image, which ``read`` reads, or a model in it exceeds a budget.

    The allowed growth since a baseline counts as a budget.

    Nothing is read or run again if nothing changed since the budgets were last checked and kept. ``on_progress``
    receives progress. Raises as ``exceeded_sizes``, ``exceeded_stacks`` and ``exceeded_runs`` if a budget cannot be
    checked.
    """
    found = [*exceeded_sizes(job, read), *exceeded_stacks(job, read), *exceeded_runs(job, on_progress)]
    if found:
        place = f"{job.elf.name} for {job.target.name}"
        raise OverBudgetError([replace(each, place=f"{place}: {each.place}") for each in found])
