"""Reports as files and as text: of a build or from a file, optionally compared with an older one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mlfbuild.core import Diagnostic, InputFileError, UsageError, listed, printable, read_bytes, shown, write_atomic
from mlfbuild.jobs import check_replaced
from mlfbuild.report.budgets import differences
from mlfbuild.report.document.compare import ReportComparison, compare_reports, comparison_json
from mlfbuild.report.document.read import Report, networks_in, read_report, runs_in, sizes_in, title_of
from mlfbuild.report.link import link_faults_in, link_faults_text
from mlfbuild.report.stack import measured_in, stack_lines, stacks_in
from mlfbuild.report.text.arenas import all_arenas
from mlfbuild.report.text.comparison import comparison_text
from mlfbuild.report.text.markdown import comparison_markdown, report_markdown
from mlfbuild.report.text.operators import all_operators
from mlfbuild.report.text.runs import all_runs
from mlfbuild.report.text.sizes import sizes_text


@dataclass(frozen=True)
class ReportDocument:
    """A report to be shown: in full, or its changes since an older one."""

    make: Callable[[], Report]
    """Returns the JSON form."""
    text: Callable[[bool], str]
    """Returns the text form; the argument is whether it is verbose."""
    faults: Callable[[], Sequence[Diagnostic]] = tuple
    """Returns the faults of the links of its images; of a saved report none, because nothing is checked."""
    before: Report | None = None
    """The older report."""
    before_name: str = ""
    """The older report's file."""

    @cached_property
    def report(self) -> Report:
        """The JSON form, made only if it is needed."""
        return self.make()

    @property
    def comparison(self) -> ReportComparison | None:
        """The changes, if there is an older report."""
        return compare_reports(self.report, self.before) if self.before is not None else None

    def as_text(self, *, verbose: bool = False) -> str:
        """Return the report as text, or its changes if there is an older one."""
        comparison = self.comparison
        if comparison is None:
            return self.text(verbose)
        return comparison_text(comparison, self.before_name, verbose=verbose)

    def as_markdown(self) -> str:
        """Return a table for each image, or of its changes if there is an older report."""
        comparison = self.comparison
        if comparison is None:
            return report_markdown(self.report)
        return comparison_markdown(comparison, self.before_name)

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values, with its changes if there is an older one.

        They fit ``report_schema``, in which ``compared`` describes the changes. Without an older report, they
        are those of ``report``.
        """
        comparison = self.comparison
        return {**self.report, **({"compared": comparison_json(comparison)} if comparison else {})}

    def write(self, path: Path) -> None:
        """Write it to ``path`` in the form of its suffix; raises as ``form_of``, and ``StorageError``.

        JSON includes the comparison, and HTML shows it; text is either the report or its changes. The file is
        replaced as a whole, so that readers never see a part of it.
        """
        write_atomic(path, f"{FORMS[form_of(path)](self)}\n".encode())


def _json_file(document: ReportDocument) -> str:
    return json.dumps(document.as_json(), indent=2)


def _html_file(document: ReportDocument) -> str:
    from mlfbuild.report.html import page  # loads templates

    return page(document.report, document.before)


FORMS: Mapping[str, Callable[[ReportDocument], str]] = {
    ".txt": ReportDocument.as_text,
    ".json": _json_file,
    ".html": _html_file,
}
_NAMES = {".txt": "text", ".json": "JSON", ".html": "HTML"}
# What a report begins with: only such a file may be replaced, so that a mistyped -o does not destroy another one.
_MARKS = {
    ".txt": re.compile(rb"[^\n]+(: [\d,]+ bytes of flash, [\d,]+ of RAM \(|: the same image as in |, compared with )"),
    ".json": re.compile(rb'\s*\{\s*"mlfbuild_report"\s*:'),
    ".html": re.compile(rb"<!DOCTYPE html>.*? mlfbuild report</title>", re.DOTALL),
}
"""The beginning of a report in each form."""


def form_of(path: Path) -> str:
    """Return the suffix of ``path``, which selects the form of a report; raises ``UsageError`` for others."""
    if path.suffix not in FORMS:
        raise UsageError(
            "unknown-report-form",
            place=path,
            reason="reports are text, JSON or HTML",
            hint="name the file .txt, .json or .html",
        )
    return path.suffix


def check_report_output(output: Path, *sources: Path) -> None:
    """Raise ``ConflictError`` if ``output`` is one of ``sources``, or exists and is not a report of its form.

    Raises ``UsageError`` as ``form_of``, and if ``output`` is a folder.
    """
    form = form_of(output)
    check_replaced(output, sources, "report", f"report as {_NAMES[form]}", lambda path: _is_report(path, _MARKS[form]))


def _is_report(path: Path, beginning: re.Pattern[bytes]) -> bool:
    data = read_bytes(path, "report")
    # An empty file is what mktemp leaves.
    return not data or beginning.match(data) is not None


def saved_report(path: Path, *, operators: bool = False) -> ReportDocument:
    """Return the report in the file ``path``, which an earlier build or another machine wrote.

    Its text includes operators if ``operators`` is set. Raises as ``read_report``.
    """
    found = read_report(path)

    def text(verbose: bool) -> str:
        return "\n\n".join(_image_text(image, path, verbose=verbose, operators=operators) for image in found["images"])

    return ReportDocument(lambda: found, text)


def _image_text(image: Report, path: Path, *, verbose: bool, operators: bool) -> str:
    sizes, budgets, whole = sizes_in(image)
    head = f"{printable(title_of(image))}: {image['flash']:,} bytes of flash, {image['ram']:,} of RAM ({path})"
    parts = [head, sizes_text(sizes, budgets, whole, verbose=verbose)]
    depths = stacks_in(image)
    if depths is not None:
        held = {name: budget.stack for name, budget in {**budgets, "": whole}.items() if budget.stack is not None}
        parts.append("\n".join(stack_lines(depths, held, measured_in(image), verbose=verbose)))
    parts += link_faults_text(link_faults_in(image))
    if "baseline" in image:
        parts.append("\n".join(differences(sizes, image["baseline"], list(budgets), Path("the baseline"))))
    if operators:
        networks = {printable(model["name"]): networks_in(model) for model in image["models"]}
        parts += all_operators(sizes.models, networks)
    parts += all_arenas(image["models"], verbose=verbose, places=operators)
    limits = {name: budget.of_runs for name, budget in {**budgets, "": whole}.items()}
    parts += all_runs(runs_in(image), limits, verbose=verbose)
    return "\n\n".join(parts)


def compared_with(document: ReportDocument, before: Report, old: Path) -> ReportDocument:
    """Return the report, compared with ``before``, which was read from ``old``.

    Raises ``InputFileError`` if the two have no image in common.
    """
    titles, own = ([title_of(image) for image in report["images"]] for report in (before, document.report))
    if not set(titles) & set(own):
        raise InputFileError(
            "report-of-other-firmware",
            place=old,
            reason=f"the report is about {_shown(titles)}, and this one about {_shown(own)}",
            hint="name a report of the same firmware and target",
        )
    return replace(document, before=before, before_name=str(old))


def _shown(titles: list[str]) -> str:
    return listed([shown(title, 60) for title in titles])
