"""Find out what a JSON file is, and read the figures of its images through the modules that own the formats."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.report.budgets import baseline_in
from mlfbuild.report.document.read import report_in
from mlfbuild.report.fleet.columns import Figures, figures_in, sizes_only

_REPORT, _BASELINE = b'"mlfbuild_report"', b'"mlfbuild_sizes"'


def read_figures(data: bytes, path: Path) -> tuple[Figures, ...]:
    """Return the figures of each image in ``data``, the content of the file ``path``, which need not exist.

    The file is a report in JSON or a baseline of sizes; the result is empty for any other file. Raises
    ``InputFileError`` if a report or a baseline is damaged or of another format version.
    """
    # The bytes are searched before anything is parsed: most JSON files of a repository are something else.
    if _REPORT in data and _begins(data, _REPORT):
        return tuple(figures_in(image) for image in report_in(data, path)["images"])
    if _BASELINE in data and _begins(data, _BASELINE):
        return tuple(_of_baseline(title, dict(taken[""])) for title, taken in baseline_in(data, path).items())
    return ()


def _begins(data: bytes, key: bytes) -> bool:
    """Return whether ``key`` is a key of the outermost object: nothing but other keys at its depth is before it.

    mlfbuild writes it first. Another program that sorts keys moves it, so the depth is counted; strings before it may
    have brackets, which only makes the file one that is not read.
    """
    before = data[: data.index(key)]
    return before.count(b"{") - before.count(b"}") == 1 and before.count(b"[") == before.count(b"]")


def _of_baseline(title: str, sizes: dict[str, int]) -> Figures:
    image, _, target = title.partition(" for ")
    return sizes_only(image, target, sizes)
