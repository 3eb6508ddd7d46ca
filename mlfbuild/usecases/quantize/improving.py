"""Change how a model is quantised, one piece of advice at a time, until its accuracy is within the limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from mlfbuild.core import MlfError, UsageError, read_bytes
from mlfbuild.jobs import Progress, target_jobs
from mlfbuild.project import Project
from mlfbuild.quantization import CALIBRATION, KEEP_FLOAT, MINMAX, LossReport, QuantizeKeys
from mlfbuild.usecases.evaluate import EvaluateJob, EvaluationReport, evaluate_jobs, evaluate_project, job_losses


@dataclass(frozen=True)
class ImproveStep:
    """One way to quantise the model, and its accuracy."""

    changes: dict[str, Any]
    """The keys of ``quantize`` that differ from those in the project file, as written there."""
    report: EvaluationReport
    kept: bool
    """Whether it is better than the best step before it."""


@dataclass(frozen=True)
class ImproveResult:
    """All trials, and the best one."""

    steps: tuple[ImproveStep, ...]
    """In order; the first has no changes."""
    content: bytes
    """The quantised file of the best step."""

    @property
    def best(self) -> ImproveStep:
        """The best step."""
        return next(step for step in reversed(self.steps) if step.kept)


def improve_model(
    project: Project,
    name: str,
    *,
    jobs: int = 1,
    progress: Progress | None = None,
    on_step: Callable[[ImproveStep], None] = lambda _: None,
) -> ImproveResult:
    """Quantise and evaluate the model ``name`` of ``project`` until no limit is missed, or no advice is left.

    Each attempt changes ``quantize`` by one piece of advice for the best attempt so far: the worst tensor's first, and
    ``int16`` activations at last. An attempt that is not better is not built upon. ``on_step`` gets each attempt when
    it has been evaluated. The project file stays as it is; the build folder has the last attempt.

    Raises ``UsageError`` for a model without the keys ``quantize`` and ``evaluate`` or without limits, and as
    ``evaluate_project`` and ``job_losses``.
    """
    first = _checked_keys(project, name)
    keys, tried, steps = first, {first}, list[ImproveStep]()
    report, content, advised = None, b"", list[QuantizeKeys]()
    candidate: QuantizeKeys | None = first
    while candidate is not None:
        tried.add(candidate)
        job, found = _evaluated(project, name, candidate, jobs, progress)
        kept = report is None or _is_better(job, found, report)
        steps.append(ImproveStep(_changes(first, candidate), found, kept))
        on_step(steps[-1])
        if kept:
            keys, report, content = candidate, found, read_bytes(job.model.request.source, "quantised model")
            if found.passed:
                break
            advised = [*candidates(keys, job_losses(job))]
        candidate = next((each for each in advised if each not in tried), None)
    return ImproveResult(tuple(steps), content)


def _checked_keys(project: Project, name: str) -> QuantizeKeys:
    model = project.models[name]
    if model.quantize is not None and model.evaluate is not None and model.evaluate.limits:
        return model.quantize
    key, reason = "evaluate", "has no limits, so that any accuracy would do"
    if model.quantize is None or model.evaluate is None:
        key = "quantize" if model.quantize is None else "evaluate"
        reason = f"the model has no key {key}"
    raise UsageError(
        "nothing-to-improve",
        place=f"{project.path}: models.{name}.{key}",
        reason=reason,
        hint="add quantize: {calibration: data/calibration.npz} and evaluate: {data: data/test.npz, metric: top1, "
        "max-drop: 0.01}",
    )


def _evaluated(
    project: Project, name: str, keys: QuantizeKeys, jobs: int, progress: Progress | None
) -> tuple[EvaluateJob, EvaluationReport]:
    model = replace(project.models[name], quantize=keys)
    changed = replace(project, models={**project.models, name: model})
    targets = target_jobs(changed, [], [name])
    ((job, report),) = evaluate_project(
        changed, targets, evaluate_jobs(changed, targets), workers=jobs, progress=progress
    )
    if isinstance(report, MlfError):
        raise report
    return job, report


def _is_better(job: EvaluateJob, found: EvaluationReport, best: EvaluationReport) -> bool:
    if job.keys.smaller_is_better:
        return found.result.value < best.result.value
    return found.result.value > best.result.value


def candidates(keys: QuantizeKeys, losses: LossReport) -> Iterator[QuantizeKeys]:
    """Yield ``keys`` with one change each, as ``losses`` advise, the worst tensor first; ``int16`` at last."""
    for advice in losses.advice.values():
        if advice.kind == CALIBRATION:
            yield replace(keys, method=MINMAX)
        elif advice.kind == KEEP_FLOAT:
            yield replace(keys, per_channel=True)
            yield replace(keys, keep_float=tuple(dict.fromkeys((*keys.keep_float, *advice.nodes))))
    if keys.weights != "int4":
        yield replace(keys, activations="int16", io="float32" if keys.io == "float32" else "")


def _changes(first: QuantizeKeys, keys: QuantizeKeys) -> dict[str, Any]:
    return {
        name.replace("_", "-"): list(value) if isinstance(value, tuple) else value
        for name, value in vars(keys).items()
        if value != getattr(first, name)
    }
