"""Results with ``--format markdown``: tables for the summary of a CI job or the comment of a merge request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mlfbuild.core import MlfError, ProcessFailedError, markdown_block, markdown_code, markdown_table

if TYPE_CHECKING:
    from mlfbuild.cli.output.ci_formats import JUnitCase
    from mlfbuild.report import Usage
    from mlfbuild.usecases import EvaluateJob, EvaluateResult, EvaluationReport

_MOST_LINES = 40
"""Lines of a program's output, the last ones: they have the error, and GitHub refuses summaries above 1 MiB."""
_MOST_TENSORS = 10


def verify_markdown(cases: Sequence[JUnitCase]) -> str:
    """Return a table with the result of each case; errors have their problems, which follow them."""
    header = ("result", "model", "target", "device", "cases", "arena", "stack")
    table = markdown_table(header, map(_case, cases), align="llllrrr")
    return f"### mlfbuild verify\n\n{table}"


def _case(case: JUnitCase) -> tuple[str, ...]:
    from mlfbuild.verify import VerifyReport

    result = case.result
    if result is None:
        return "skipped", markdown_code(case.text), "", "", "", "", ""
    names = (markdown_code(case.name), markdown_code(case.suite))
    if isinstance(result, MlfError):
        return "**error**", *names, "", "", "", ""
    assert isinstance(result, VerifyReport)  # evaluations have a table of their own
    used = result.workspace_used
    arena = "" if used is None else f"{used:,} of {result.workspace_size:,}"
    stack = "" if result.stack_used is None else f"{result.stack_used:,}"
    ran = f"{result.cases:,}" if result.ran == result.cases else f"{result.ran:,} of {result.cases:,}"
    return "passed" if result.passed else "**failed**", *names, markdown_code(result.board), ran, arena, stack


def evaluate_markdown(results: Sequence[EvaluateResult]) -> str:
    """Return a table with the value of each model, its limits and its worst class."""
    header = ("result", "model", "machine", "metric", "value", "limits", "cases", "most confused", "worst cases")
    table = markdown_table(header, [_evaluation(job, report) for job, report in results], align="llllrlrll")
    losses = [_losses(job.title, report.losses) for job, report in results
              if not isinstance(report, MlfError) and report.losses is not None]  # fmt: skip
    return "\n\n".join(["### mlfbuild evaluate", table, *losses])


def _losses(title: str, found: Mapping[str, Any]) -> str:
    from mlfbuild.quantization import LOSS_COLUMNS, loss_rows, loss_summary

    rows = [(markdown_code(row[0]), *row[1:-1], markdown_code(row[-1]) if row[-1] else "")
            for row in loss_rows(found, _MOST_TENSORS)]  # fmt: skip
    table = markdown_table([*LOSS_COLUMNS], rows, align="".join(LOSS_COLUMNS.values()))
    return f"Lost accuracy of {markdown_code(title)}: {markdown_code(loss_summary(found))}\n\n{table}"


def _evaluation(job: EvaluateJob, report: EvaluationReport | MlfError) -> tuple[str, ...]:
    from mlfbuild.evaluation import class_title, confusions

    name = markdown_code(job.title)
    if isinstance(report, MlfError):
        return "**error**", name, "", "", "", "", "", "", ""
    result = report.result
    limits = ", ".join(f"{key} {limit:g}" for key, limit in report.limits.items())
    pairs = [
        markdown_code(f"{class_title(result, label)} as {class_title(result, found)}") + f" ({cases:,})"
        for label, found, cases in confusions(result)[:3]
    ]
    return (
        "passed" if report.passed else "**failed**", name, markdown_code(report.machine), markdown_code(result.metric),
        f"{result.value:.6g}", limits, f"{result.cases:,}", ", ".join(pairs),
        ", ".join(str(each.case) for each in result.worst[:5]),
    )  # fmt: skip


def usage_markdown(usages: Sequence[Usage]) -> str:
    """Return a table of what models and images take, with a column for the part and the budget."""
    header = ("", "", "bytes", "share")
    rows = [
        (markdown_code(each.subject), each.measure, f"{each.size:,}", markdown_code(each.shares)) for each in usages
    ]
    table = markdown_table(header, rows, align="llrl") if rows else "Everything is up to date."
    return f"### mlfbuild build\n\n{table}"


def error_markdown(error: MlfError) -> str:
    """Return an error, its problems, and the end of what a failed program printed."""
    problems = [str(problem) for problem in getattr(error, "problems", ())]
    # The message of some errors is that of their problems.
    whole = not problems or not all(problem in error.message for problem in problems)
    # With the hint, but without the output of a program, which follows.
    message = error.message if problems or isinstance(error, ProcessFailedError) else str(error)
    lines = [f"\n**mlfbuild:** {markdown_code(message)}\n"] if whole else [""]
    lines += [f"- {markdown_code(problem)}" for problem in problems]
    if isinstance(error, ProcessFailedError) and error.output.strip():
        lines.append(markdown_block("\n".join(error.output.rstrip().splitlines()[-_MOST_LINES:])))
    return "\n".join(lines)
