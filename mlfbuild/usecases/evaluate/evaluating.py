"""Run the jobs of ``evaluate``: batches of the test set through the network, the outputs into the metric.

The result stays in the build folder for reports, with the key of its action. It is measured anew each time, as
``verify`` runs its vectors anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy.typing as npt

from mlfbuild import archive
from mlfbuild.core import (
    CheckFailedError,
    Diagnostic,
    Mistake,
    MlfError,
    OnProgress,
    UsageError,
    listed,
    no_progress,
    read_bytes,
    sha256,
    write_atomic,
)
from mlfbuild.datasets import data_digest
from mlfbuild.evaluation import (
    Evaluation,
    evaluation_in,
    evaluation_json,
    missed,
    value_text,
)
from mlfbuild.executor import check_described, chosen_module
from mlfbuild.jobs import Action, InputChange, Progress, TargetJob, differences, flat, target_dependencies, target_jobs
from mlfbuild.native import SourceFiles
from mlfbuild.project import Project
from mlfbuild.usecases.build import build_project
from mlfbuild.usecases.evaluate.jobs import EvaluateJob, check_any, check_test_data, needed_targets
from mlfbuild.usecases.evaluate.lost_accuracy import check_quantized, job_losses, losses_state, record_losses
from mlfbuild.usecases.evaluate.machines import opened, opened_source
from mlfbuild.usecases.evaluate.measuring import measured

Array = npt.NDArray[Any]

RESULT = "result.json"
"""The last result of a job, in its folder."""
MOST_CLASSES = 100
"""The most classes, and pairs of classes, of a result in a report."""


@dataclass(frozen=True)
class EvaluationReport:
    """The results of a model on one machine."""

    model: str
    machine: str
    """``this machine``, the board, or the device."""
    result: Evaluation
    missed: Mapping[str, str]
    """The keys of the limits that are missed, each with a clause."""
    limits: Mapping[str, float]
    """The limits by their keys."""
    losses: Mapping[str, Any] | None = None
    """Losses of the tensors of a quantised model, as in ``LossReport.to_json``, if they were measured."""

    @property
    def passed(self) -> bool:
        """Whether no limit is missed."""
        return not self.missed

    @property
    def board(self) -> str:
        """The machine, as reports of verifications call it."""
        return self.machine

    @property
    def problems(self) -> tuple[str, ...]:
        """The limits that are missed, for JUnit."""
        return tuple(f"{self.model}: {text}" for text in self.missed.values())

    @property
    def hint(self) -> str:
        """The worst cases, for JUnit."""
        worst = ", ".join(str(each.case) for each in self.result.worst)
        return f"worst cases: {worst}" if worst else ""

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            **vars(self),
            "missed": dict(self.missed),
            "limits": dict(self.limits),
            "result": evaluation_json(self.result),
        }

    def summary(self) -> str:
        """Return what is missed; call it only if something is."""
        return ", and ".join(self.missed.values())

    def text(self) -> str:
        """Return the value and the limits on one line."""
        return f"{self.model}: {value_text(self.result, self.limits)} on {self.machine}"


EvaluateResult = tuple[EvaluateJob, EvaluationReport | MlfError]
"""A job, and its report or the reason why the model could not be evaluated."""


def evaluate_project(
    project: Project,
    targets: Sequence[TargetJob],
    jobs: Sequence[EvaluateJob],
    *,
    losses: bool = False,
    frozen: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[EvaluateResult]:
    """Build the models of ``jobs``, ``workers`` at a time, and evaluate them one after the other.

    With ``losses``, also measure and record what the tensors of models lose that the build quantises. Returns each job
    with its report, or with the error if it could not be evaluated. Raises ``CheckFailedError`` if there are none,
    ``UsageError`` for ``losses`` of no model, and as ``build_project``.
    """
    check_any(project, jobs)
    if losses:
        check_quantized(project.path, jobs)
    check_test_data(project, jobs)
    watch = progress or Progress()
    needed = needed_targets(targets, jobs)
    build_project(
        needed, lenders=target_jobs(project), jobs=workers, progress=watch, locked=project if frozen else None
    )
    return evaluated(jobs, watch, losses=losses)


def evaluated(jobs: Sequence[EvaluateJob], watch: Progress, *, losses: bool = False) -> list[EvaluateResult]:
    """Evaluate ``jobs``, whose models have been built; see ``evaluate_project``."""
    watch.expect(len(jobs))
    return [(job, _watched(job, watch, losses=losses and job.model.quantize is not None)) for job in jobs]


def _watched(job: EvaluateJob, watch: Progress, *, losses: bool) -> EvaluationReport | MlfError:
    watch.start(job.task)
    try:
        report = evaluate_job(job, partial(watch.step, job.task))
        if losses:
            report = replace(report, losses=record_losses(job, job_losses(job)))
    except MlfError as error:
        watch.fail(job.task, "could not be evaluated")
        return error
    text = f"{report.result.metric} {report.result.value:.6g}"
    if report.passed:
        watch.finish(job.task, text)
    else:
        watch.fail(job.task, f"FAILED: {text}")
    return report


def evaluate_job(job: EvaluateJob, on_progress: OnProgress = no_progress) -> EvaluationReport:
    """Run the model of ``job``, which has been built, on its whole test set, and record the result.

    Raises ``InputFileError`` if data are damaged or do not fit the network, ``UsageError`` for an output or a function
    that does not exist, ``CheckFailedError`` without cases, and as the machine that runs it.
    """
    library, where = archive.open_archive(job.model.archive), str(job.model.archive)
    try:
        module = chosen_module(library, job.keys.module, where)
    except UsageError as error:
        raise error.within(f"models.{job.model.model}.evaluate.module") from None
    check_described(module)
    libraries = target_dependencies(replace(job.target, models=(job.model,), others=()))
    with opened(job, library, module, libraries) as machine:
        result = measured(job, module, machine.run, on_progress)
    if job.keys.max_drop is not None and job.model.quantize is not None:
        with opened_source(job, job.model.quantize.source) as (network, run):
            source = measured(job, network, run, on_progress)
        result = replace(result, source_value=source.value)
    report = EvaluationReport(job.model.model, machine.name, result, missed(result, job.keys), job.keys.limits)
    _record(job, report)
    return report


def missed_limits(project: Project, results: Sequence[EvaluateResult]) -> list[Diagnostic]:
    """Return a finding for each limit that ``results`` miss, with its line in the project file."""
    return project.problems(
        (("models", report.model, "evaluate", key), Mistake("evaluation-short", reason=f"{text} on {report.machine}"))
        for _, report in results
        if not isinstance(report, MlfError)
        for key, text in report.missed.items()
    )


def evaluation_failed(project: Project, results: Sequence[EvaluateResult]) -> list[MlfError]:
    """Return the errors of ``results``: of models that could not be evaluated, then one for all limits that are missed.

    That one has the findings of ``missed_limits``.
    """
    errors = [report for _, report in results if isinstance(report, MlfError)]
    reports = {job.title: report for job, report in results if not isinstance(report, MlfError) and report.missed}
    if not reports:
        return errors
    problems, texts = missed_limits(project, results), [each.summary() for each in reports.values()]
    more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
    place, hint = f"evaluate: {listed(list(reports))}", "see the classes and cases above"
    return [
        *errors,
        CheckFailedError("evaluation-short", place=place, reason=texts[0] + more, hint=hint, problems=problems),
    ]


def evaluate_action(job: EvaluateJob) -> Action:
    """Return what an evaluation depends on: the archive, the data, the functions of the user, and the settings."""
    digests = {"archive": sha256(read_bytes(job.model.archive, "archive")), "data": data_digest(job.keys.data)}
    if job.keys.max_drop is not None and job.model.quantize is not None:
        source = job.model.quantize.source
        digests[f"model {source.name}"] = SourceFiles(source).read().identity
    module = job.metric_module
    if module is not None:
        digests[f"file {module.name}"] = sha256(module.read_bytes()) if module.is_file() else ""
    return Action("evaluate", {**digests, **dict(flat(json.loads(job.settings())))})


def evaluated_state(job: EvaluateJob) -> dict[str, Any]:
    """Return the last result of ``job`` as JSON values, ``outdated`` if it would evaluate something else now.

    ``state`` is ``passed``, ``failed``, ``outdated`` or ``never``; unless it is the last one, there are also the fields
    of ``EvaluationReport``, with a limited number of classes. A quantised model has its ``losses_state``. Nothing is
    built or run.
    """
    try:
        last = json.loads((job.folder / RESULT).read_text("utf-8"))
        result = evaluation_in(last["result"])
        # The present limits: they do not change what was measured.
        short = missed(result, job.keys)
        state = "outdated" if last["evaluated"] != evaluate_action(job).key else "failed" if short else "passed"
        known = {"machine": last["machine"], "limits": job.keys.limits, "missed": short}
        found = {"state": state, **known, "result": evaluation_json(result, MOST_CLASSES)}
    # A record of another version or a damaged one is as good as none.
    except (OSError, ValueError, LookupError, TypeError, AttributeError, MlfError):
        found = {"state": "never"}
    return found if job.model.quantize is None else {**found, "losses": losses_state(job)}


def evaluated_changes(job: EvaluateJob) -> list[InputChange]:
    """Return the inputs of ``job`` that changed since its last evaluation, whose result is ``evaluated_state``."""
    try:
        inputs = json.loads((job.folder / RESULT).read_text("utf-8"))["inputs"]
        return differences(inputs, evaluate_action(job).inputs)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, MlfError):
        return []


def _record(job: EvaluateJob, report: EvaluationReport) -> None:
    """Keep the result for reports."""
    action = evaluate_action(job)
    found = {"evaluated": action.key, **report.as_json(), "inputs": dict(action.inputs)}
    write_atomic(job.folder / RESULT, f"{json.dumps(found, indent=2)}\n".encode())
