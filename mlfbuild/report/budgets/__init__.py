"""Budgets of a linked image: flash, RAM, stack, instructions, and growth since a baseline.

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
    from mlfbuild.report.budgets.instructions import (
        budgeted_jobs as budgeted_jobs,
        check_instructions as check_instructions,
        check_profiles as check_profiles,
    )
    from mlfbuild.report.budgets.link import (
        LinkBudgets as LinkBudgets,
        exceeded as exceeded,
        link_budgets as link_budgets,
        not_checked as not_checked,
        without_budget as without_budget,
    )
else:
    __getattr__ = lazy_attributes(__name__)
