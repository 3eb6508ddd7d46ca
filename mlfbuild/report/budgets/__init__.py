"""Budgets of a linked image: flash, RAM, stack, instructions, cycles, latency, and growth since a baseline.

``check`` runs all of them after a link; the others each measure one kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.report.budgets.check import check_budgets
    from mlfbuild.report.budgets.growth import (
        baseline_in, baseline_of, check_baseline, difference_lines, differences, unchecked, update_baseline,
    )
    from mlfbuild.report.budgets.link import LinkBudgets, exceeded, link_budgets, not_checked, without_budget
    from mlfbuild.report.budgets.runs import budgeted_jobs, check_profiles, check_runs
else:
    __getattr__ = lazy_attributes(__name__)
