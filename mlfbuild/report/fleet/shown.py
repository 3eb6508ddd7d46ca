"""The parts that the text and the page have in common: the summary, the columns with values, and joined cells."""

from __future__ import annotations

from mlfbuild.core import counted
from mlfbuild.report.fleet.columns import COLUMNS, FleetColumn
from mlfbuild.report.fleet.overview import Fleet, FleetImage

SHORT = 8
"""Digits of a commit."""
GROWTH = ("flash", "ram")
"""Columns whose growth over the range is shown beside them."""


def summary(fleet: Fleet) -> str:
    """Return one line: how many images, targets, reports and commits there are."""
    images = fleet.present
    targets = {image.now.value("target") for image in images} - {None}
    reports = {image.report for image in images}
    text = f"{counted(len(images), 'image')}"
    text += f" for {counted(len(targets), 'target')}" if targets else ""
    text += f" in {counted(len(reports), 'file')}"
    if fleet.commits:
        first, last = fleet.commits[0], fleet.commits[-1]
        text += f"; {counted(len(fleet.commits), 'commit')}, {first.id[:SHORT]} of {first.date[:10]}"
        text += f" to {last.id[:SHORT]} of {last.date[:10]}" if first != last else ""
    return text


def known_columns(fleet: Fleet) -> list[FleetColumn]:
    """Return the columns with a cell of their own of which a value is known."""
    images = fleet.present
    return [
        column
        for column in COLUMNS
        if not column.beside and any(image.now.value(column.name) is not None for image in images)
    ]


def beside(image: FleetImage, column: FleetColumn) -> str:
    """Return what is shown in the cell of ``column`` besides its present value, such as ``on mps2-an386``."""
    others = (other for other in COLUMNS if other.beside == column.name)
    return " ".join(
        f"{each.title} {each.text(value)}" for each in others if (value := image.now.value(each.name)) is not None
    )
