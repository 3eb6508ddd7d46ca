"""Reports as Markdown for summaries of CI jobs and comments: a table for each image, or of its changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mlfbuild.core import change_text, markdown_code, markdown_table
from mlfbuild.core.keys import rounded_size
from mlfbuild.project import Budget
from mlfbuild.report.document.compare import Change, ImageChange, ReportComparison
from mlfbuild.report.document.read import Report, named_title, sizes_in, title_of
from mlfbuild.report.link import link_faults_in
from mlfbuild.report.sizes.owners import Owner
from mlfbuild.report.text.arenas import HEADER, memory_rows, more_text, waits_text

_HEADER = ("", "flash", "of budget", "RAM", "of budget", "stack", "of budget")
_CHANGES = ("", "before", "now", "change")


def report_markdown(report: Report) -> str:
    """Return a table of owners for each image: bytes and shares of budgets; what is unknown is ``-``."""
    return "\n\n".join("\n".join(_image(image)) for image in report["images"])


def _image(image: Report) -> Iterator[str]:
    sizes, budgets, whole = sizes_in(image)
    total = Owner("total", tuple(piece for owner in (*sizes.models, *sizes.others) for piece in owner.pieces))
    depths = {model["name"]: model["stack"]["worst_case"] for model in image["models"] if "stack" in model}
    depths["total"] = image.get("stack", {}).get("worst_case")
    yield f"### {markdown_code(title_of(image))}"
    yield ""
    rows = [
        _row(f"model {markdown_code(owner.name)}", owner, budgets.get(owner.name, Budget()), depths.get(owner.name))
        for owner in sizes.models
    ]
    rows += [_row(markdown_code(owner.name), owner, Budget(), None) for owner in sizes.others]
    yield markdown_table(_HEADER, [*rows, _row("**the image**", total, whole, depths["total"])], align="lrrrrrr")
    memories = [_memory(use, whole) for use in image.get("memories", ())]
    if memories:
        yield "\n" + markdown_table(("memory", "bytes", "of", "of budget"), memories, align="lrrr")
    for model in image["models"]:
        for network in (each for each in model.get("networks", ()) if "arenas" in each):
            name, arenas = markdown_code(network["module"]), network["arenas"]
            yield f"\nAccesses of {name} wait {waits_text(arenas)} in a run, by estimate; {more_text(arenas)}.\n"
            rows = [tuple(map(markdown_code, row[:1])) + row[1:] for row in memory_rows(network)]
            yield markdown_table(HEADER, rows, align="lrrrlr")
    found = link_faults_in(image)
    lines = [f"- {markdown_code(str(fault))}" for fault in found.faults]
    lines += [f"- not checked: {markdown_code(note)}" for note in found.notes]
    if lines:
        yield "\n".join(["", *lines])


def _row(name: str, owner: Owner, budget: Budget, stack: int | None) -> tuple[str, ...]:
    figures = ((owner.flash, budget.flash), (owner.ram, budget.ram), (stack, budget.stack))
    cells = (("-" if size is None else f"{size:,}", _share(size, limit)) for size, limit in figures)
    return name, *(cell for pair in cells for cell in pair)


def _memory(use: Mapping[str, Any], whole: Budget) -> tuple[str, ...]:
    used = use.get("used")
    size = "-" if used is None else f"{used:,}"
    return markdown_code(use["name"]), size, rounded_size(use["size"]), _share(used, whole.memories.get(use["name"]))


def _share(size: int | None, limit: int | None) -> str:
    if limit is None:
        return ""
    if size is None:
        return f"unknown of {rounded_size(limit)}"
    share = f"{100 * size / limit:.0f} % of {rounded_size(limit)}" if limit else "0 bytes"
    return f"**{share}**" if size > limit else share


def comparison_markdown(comparison: ReportComparison, before: str) -> str:
    """Return a table for each image with everything that changed since the report ``before``."""
    parts = ["\n".join(_changes(image, before)) for image in comparison.images]
    for names, text in ((comparison.only_now, "not in"), (comparison.only_before, "only in")):
        parts += [f"{markdown_code(named_title(*each))} is {text} {markdown_code(before)}." for each in names]
    return "\n\n".join(parts)


def _changes(image: ImageChange, before: str) -> Iterator[str]:
    yield f"### {markdown_code(named_title(image.firmware, image.target))}, compared with {markdown_code(before)}"
    yield ""
    if image.unchanged:
        yield "The images are the same."
        return
    rows = [_change("**the image**, flash", image.flash), _change("**the image**, RAM", image.ram)]
    for owner in image.owners:
        name = f"model {markdown_code(owner.name)}" if owner.model else markdown_code(owner.name)
        figures = {"flash": owner.flash, "RAM": owner.ram, **owner.figures}
        # The time follows from the cycles.
        figures.pop("modelled ns")
        rows += [_change(f"{name}, {title}", change) for title, change in figures.items() if change.more]
    yield markdown_table(_CHANGES, rows, align="lrrr")


def _change(name: str, change: Change) -> tuple[str, ...]:
    sizes = ("-" if size is None else f"{size:,}" for size in (change.before, change.now))
    return name, *sizes, change_text(change.before or 0, change.now or 0)
