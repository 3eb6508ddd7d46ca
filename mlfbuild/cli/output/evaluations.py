"""Evaluations as text on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mlfbuild.cli.options import SharedOptions
from mlfbuild.cli.output.printing import FAILED, PASSED, show
from mlfbuild.core import MlfError

if TYPE_CHECKING:
    from mlfbuild.usecases import EvaluateResult


def show_evaluations(options: SharedOptions, results: Sequence[EvaluateResult], *, details: bool = False) -> None:
    """Print the value of each model that was evaluated, and its classes and worst cases if it is short.

    With ``details``, print them for all models. With -q, models that passed are left out. Losses follow if they were
    measured.
    """
    from mlfbuild.evaluation import evaluation_details
    from mlfbuild.quantization import losses_text

    for _, report in results:
        if isinstance(report, MlfError) or (options.quiet and report.passed):
            continue
        line, more = report.text(), ""
        if details or options.verbose or not report.passed:
            more = evaluation_details(report.result, verbose=options.verbose)
        if report.losses is not None:
            more += f"\n\nlost accuracy: {losses_text(report.losses, verbose=options.verbose)}"
        show(f"{line}\n{more}".rstrip(), {line: PASSED if report.passed else FAILED})
