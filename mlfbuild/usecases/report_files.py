"""Reports as files and as text: of a build or from a file, optionally compared with an older one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mlfbuild.build import check_replaced
from mlfbuild.core import InputFileError, UsageError, listed, printable, read_bytes, shown, write_atomic
from mlfbuild.report import (
    Report,
    ReportComparison,
    all_operators,
    all_runs,
    compare_reports,
    comparison_json,
    comparison_text,
    networks_in,
    read_report,
    runs_in,
    sizes_in,
    sizes_text,
    title_of,
)
from mlfbuild.report.budgets import differences
from mlfbuild.report.stack import measured_in, stack_lines, stacks_in


@dataclass(frozen=True)
class Presented:
    """A report to be shown: in full, or its changes since an older one."""

    make: Callable[[], Report]
    """Returns the JSON form."""
    text: Callable[[bool], str]
    """Returns the text form; the argument is whether it is verbose."""
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

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON values, with its changes if there is an older one."""
        comparison = self.comparison
        return {**self.report, **({"compared": comparison_json(comparison)} if comparison else {})}

    def write(self, path: Path) -> None:
        """Write it to ``path`` in the form of its suffix; raises as ``form_of``, and ``StorageError``."""
        write_atomic(path, f"{FORMS[form_of(path)](self)}\n".encode())


def _json_file(presented: Presented) -> str:
    return json.dumps(presented.as_json(), indent=2)


def _html_file(presented: Presented) -> str:
    from mlfbuild.report.html import page  # loads templates

    return page(presented.report, presented.before)


FORMS: Mapping[str, Callable[[Presented], str]] = {
    ".txt": Presented.as_text,
    ".json": _json_file,
    ".html": _html_file,
}
_NAMES = {".txt": "text", ".json": "JSON", ".html": "HTML"}
_MARKS = {
    ".txt": re.compile(rb"[^\n]+(: [\d,]+ bytes of flash, [\d,]+ of RAM \(|: the same image as in |, compared with )"),
    ".json": re.compile(rb'\s*\{\s*"mlfbuild_report"\s*:'),
    ".html": re.compile(rb"<!DOCTYPE html>.*? mlfbuild report</title>", re.DOTALL),
}
"""The beginning of a report in each form."""


def form_of(path: Path) -> str:
    """Return the suffix of ``path``, which selects the form of a report; raises ``UsageError`` for others."""
    if path.suffix not in FORMS:
        raise UsageError(f"{path}: reports are text, JSON or HTML: call it .txt, .json or .html")
    return path.suffix


def check_report_output(output: Path, *sources: Path) -> None:
    """Raise ``ConflictError`` where ``output`` is one of ``sources`` or holds something else than a report of its form.

    Raises ``UsageError`` as ``form_of``, and where it is a folder.
    """
    form = form_of(output)
    check_replaced(output, sources, "report", f"report as {_NAMES[form]}", lambda path: _is_report(path, _MARKS[form]))


def _is_report(path: Path, beginning: re.Pattern[bytes]) -> bool:
    data = read_bytes(path, "report")
    return not data or beginning.match(data) is not None


def saved(path: Path, *, operators: bool = False) -> Presented:
    """Return the report in the file ``path``, of a build before or of another machine.

    Its text has ``operators``, too, if asked for. Raises as ``read_report``.
    """
    found = read_report(path)

    def text(verbose: bool) -> str:
        return "\n\n".join(_image_text(image, path, verbose=verbose, operators=operators) for image in found["images"])

    return Presented(lambda: found, text)


def _image_text(image: Report, path: Path, *, verbose: bool, operators: bool) -> str:
    sizes, budgets, whole = sizes_in(image)
    head = f"{printable(title_of(image))}: {image['flash']:,} bytes of flash, {image['ram']:,} of RAM ({path})"
    parts = [head, sizes_text(sizes, budgets, whole, verbose=verbose)]
    depths = stacks_in(image)
    if depths is not None:
        held = {name: budget.stack for name, budget in {**budgets, "": whole}.items() if budget.stack is not None}
        parts.append("\n".join(stack_lines(depths, held, measured_in(image), verbose=verbose)))
    if "baseline" in image:
        parts.append("\n".join(differences(sizes, image["baseline"], list(budgets), Path("the baseline"))))
    if operators:
        networks = {printable(model["name"]): networks_in(model) for model in image["models"]}
        parts += all_operators(sizes.models, networks)
    limits = {name: budget.instructions for name, budget in {**budgets, "": whole}.items()}
    known = {name: limit for name, limit in limits.items() if limit is not None}
    parts += all_runs(runs_in(image), known, verbose=verbose)
    return "\n\n".join(parts)


def older(path: Path) -> Report:
    """Return the report in the file ``path`` for a comparison; raises as ``read_report``."""
    return read_report(path)


def compared_with(presented: Presented, before: Report, old: Path) -> Presented:
    """Return the report, compared with that ``before``, which was read from ``old``.

    Raises ``InputFileError`` where the two have no image in common.
    """
    titles, own = ([title_of(image) for image in report["images"]] for report in (before, presented.report))
    if not set(titles) & set(own):
        raise InputFileError(
            f"{old}: is a report of other firmware: it has {_shown(titles)}, this report {_shown(own)}; name one of "
            "the same firmware and target"
        )
    return replace(presented, before=before, before_name=str(old))


def _shown(titles: list[str]) -> str:
    return listed([shown(title, 60) for title in titles])
