"""Whether a firmware image holds what the project file allows it: bytes, stack, and instructions of its models."""

from __future__ import annotations

from mlfbuild.build import FirmwareJob
from mlfbuild.core import OverBudgetError, Tell, tell_nobody
from mlfbuild.report.budgets.instructions import exceeded_instructions
from mlfbuild.report.budgets.sizes import exceeded_sizes
from mlfbuild.report.budgets.stack import exceeded_stacks


def check_budgets(job: FirmwareJob, tell: Tell = tell_nobody) -> None:
    """Raise ``OverBudgetError`` where the job's image, or a model in it, takes more than its budget or baseline allow.

    It has a line for each. Nothing is read or run again where nothing changed since budgets were found to hold;
    ``tell`` is told what runs. Raises as ``exceeded_sizes``, ``exceeded_stacks`` and ``exceeded_instructions`` where
    that cannot be told.
    """
    lines = [*exceeded_sizes(job), *exceeded_stacks(job), *exceeded_instructions(job, tell)]
    if lines:
        raise OverBudgetError("\n".join(f"{job.elf.name} for {job.target.name}: {line}" for line in lines))
