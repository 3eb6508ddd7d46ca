"""Rank the tensors of a model that the build quantised by lost accuracy, and keep the result for reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlfbuild.core import MlfError, UsageError, write_atomic
from mlfbuild.datasets import data_digest
from mlfbuild.jobs import Action
from mlfbuild.native import SourceFiles
from mlfbuild.quantization import LossReport
from mlfbuild.usecases.compare.losses import measured_losses
from mlfbuild.usecases.evaluate.jobs import EvaluateJob
from mlfbuild.verify import SECONDS_A_CASE

_LOSSES = "losses.json"
_MOST_CASES = 256
"""Cases that rank the tensors; a case takes about 30 ms, and its ratios hardly change with more of them."""


def job_losses(job: EvaluateJob) -> LossReport:
    """Return what the tensors of the quantised model of ``job`` lose, on at most 256 cases of its test set.

    Both networks run on this machine. Raises ``UsageError`` if the build does not quantise the model, and as
    ``measured_losses``.
    """
    step = job.model.quantize
    if step is None:
        raise _not_quantized(f"models.{job.model.model}")
    quantized = job.model.request
    network = replace(quantized, source=step.source)
    timeout = job.timeout or SECONDS_A_CASE
    return measured_losses(network, quantized, job.keys.data, most=_MOST_CASES, timeout=timeout)


def check_quantized(project: Path, jobs: Sequence[EvaluateJob]) -> None:
    """Raise ``UsageError`` if the build quantises no model of ``jobs``."""
    if not any(job.model.quantize for job in jobs):
        raise _not_quantized(str(project))


def _not_quantized(place: str) -> UsageError:
    return UsageError(
        "losses-without-quantize",
        place=place,
        reason="losses are those of a network that the build quantises, and there is no key quantize",
        hint="add quantize to a model, or compare two files with `mlfbuild compare`",
    )


def record_losses(job: EvaluateJob, found: LossReport) -> dict[str, Any]:
    """Keep ``found`` for reports, by the content of what it was measured with; return it as JSON values."""
    values = found.to_json()
    kept = {"measured": _action(job).key, **values}
    write_atomic(_path(job), f"{json.dumps(kept, indent=2)}\n".encode())
    return values


def losses_state(job: EvaluateJob) -> dict[str, Any]:
    """Return the last losses of ``job`` as JSON values, with their ``state``: current, outdated or never.

    Only current ones have more fields than that, those of ``LossReport.to_json``. Nothing is built or run.
    """
    try:
        kept = json.loads(_path(job).read_text("utf-8"))
        measured = kept.pop("measured")
        return {"state": "current", **kept} if measured == _action(job).key else {"state": "outdated"}
    # A record of another version or a damaged one is as good as none.
    except (OSError, ValueError, LookupError, TypeError, AttributeError, MlfError):
        return {"state": "never"}


def _path(job: EvaluateJob) -> Path:
    # The same for all machines, because losses are always measured on this one.
    return (job.folder.parent if job.on_target else job.folder) / _LOSSES


def _action(job: EvaluateJob) -> Action:
    request, step = job.model.request, job.model.quantize
    networks = {"quantised": request.source, **({} if step is None else {"float": step.source})}
    files = {name: SourceFiles(path).read().identity for name, path in networks.items()}
    options = json.dumps(dict(request.options), sort_keys=True)
    return Action("losses", {**files, "data": data_digest(job.keys.data), "options": options, "most": str(_MOST_CASES)})
