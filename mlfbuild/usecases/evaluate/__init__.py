"""Evaluate models: run each on its test set, here or on the targets that the user names, and compare with its limits.

``jobs`` determines what is evaluated where, ``evaluating`` builds, runs and measures it, and ``lost_accuracy`` finds
where a quantised network loses accuracy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.evaluate.evaluating import (
        EvaluateResult, EvaluationReport, evaluate_job, evaluate_project, evaluated, evaluated_changes, evaluated_state,
        evaluation_failed, missed_limits,
    )
    from mlfbuild.usecases.evaluate.jobs import (
        EvaluateJob, check_test_data, evaluate_jobs, evaluated_files, missing_test_data,
    )
    from mlfbuild.usecases.evaluate.lost_accuracy import job_losses
else:
    __getattr__ = lazy_attributes(__name__)
