"""Budgets of a linked image: flash, RAM, stack, instructions, cycles, latency, and growth since a baseline.

``check`` runs all of them after a link; the others each measure one kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.report.budgets.baseline import differences as differences
    from mlfbuild.report.budgets.check import check_budgets as check_budgets
    from mlfbuild.report.budgets.growth import (
        baseline_of as baseline_of,
        check_baseline as check_baseline,
        difference_lines as difference_lines,
        unchecked as unchecked,
        update_baseline as update_baseline,
    )
    from mlfbuild.report.budgets.link import (
        LinkBudgets as LinkBudgets,
        exceeded as exceeded,
        link_budgets as link_budgets,
        not_checked as not_checked,
        without_budget as without_budget,
    )
    from mlfbuild.report.budgets.runs import (
        budgeted_jobs as budgeted_jobs,
        check_profiles as check_profiles,
        check_runs as check_runs,
    )
else:
    __getattr__ = lazy_attributes(__name__)
