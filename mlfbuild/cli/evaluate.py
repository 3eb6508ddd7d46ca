"""``mlfbuild evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mlfbuild.cli.options import SharedOptions, timeout_option, verb
from mlfbuild.cli.output.evaluations import show_evaluations
from mlfbuild.cli.output.markdown import evaluate_markdown
from mlfbuild.cli.output.printing import report_error, show_as_it_is, show_json
from mlfbuild.cli.output.progress import building
from mlfbuild.core import MlfError

if TYPE_CHECKING:
    from mlfbuild.usecases import EvaluateJob, EvaluationReport


@verb("file", "target", "model", "jobs", "on", "frozen", "offline", "no_wait", "summary_format")
@timeout_option(usual=120)
@click.option("--losses", is_flag=True, help="Also rank the tensors of quantised models by lost accuracy.")
def evaluate(options: SharedOptions, timeout: float | None, losses: bool) -> None:
    """Measure every model that has the key evaluate on its test set.

    The compiled network runs on this machine over the whole test set, whatever its targets are. With --target, it runs
    on the device of that target, or on its board, which QEMU emulates. The exit status is 1 if a model misses a limit.

    With --losses, each tensor of a model with the key quantize is compared with the float network, on this machine; the
    report shows the result as well. With -v, the figures of all classes and tensors are printed.
    """
    from mlfbuild.jobs import load, target_jobs
    from mlfbuild.usecases import evaluate_jobs, evaluate_project, evaluation_failed

    project = options.placed(load(options.file))
    targets = target_jobs(project, options.target, options.model)
    jobs = evaluate_jobs(project, targets, on_targets=bool(options.target), timeout=timeout)
    with building(options, project) as progress:
        results = evaluate_project(
            project, targets, jobs, losses=losses, frozen=options.frozen, workers=options.jobs, progress=progress
        )
    if options.json:
        show_json({"evaluations": [_json(job, report) for job, report in results]})
    elif options.format == "markdown":
        show_as_it_is(evaluate_markdown(results))
    else:
        show_evaluations(options, results, details=True)
    failures = evaluation_failed(project, results)
    for error in failures[1:]:
        report_error(error, options.format)
    if failures:
        raise failures[0]


def _json(job: EvaluateJob, report: EvaluationReport | MlfError) -> dict[str, Any]:
    """Return the result of one model as JSON values."""
    named = {"model": job.model.model, "target": job.target.name if job.on_target else None}
    if isinstance(report, MlfError):
        return {**named, "passed": False, "error": str(report)}
    return {**named, "passed": report.passed, **report.as_json()}
