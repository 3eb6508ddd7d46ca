"""Verify models: run each module that has vectors in test firmware on its target's board, and compare all outputs.

``jobs`` determines what can be verified where, ``verifying`` runs it and checks the budgets that need a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.usecases.verify.jobs import (
        LeftOut, VerifyJob, jobs_in_image, left_out, verify_jobs, with_device, with_parameters, without_runners,
        wrong_outputs,
    )
    from mlfbuild.usecases.verify.verifying import (
        VerifyResult, budget_error, unchecked_in_runs, verification_failed, verified_changes, verified_state,
        verify_elf, verify_job, verify_project,
    )
else:
    __getattr__ = lazy_attributes(__name__)
