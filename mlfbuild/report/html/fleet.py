"""The page of many images over time: a table of the present figures, and for each image its figures by commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlfbuild.report.document.compare import Change
from mlfbuild.report.fleet.columns import COLUMNS, INDEX, FleetColumn
from mlfbuild.report.fleet.overview import Fleet, FleetImage
from mlfbuild.report.fleet.shown import GROWTH, SHORT, beside, known_columns, summary
from mlfbuild.report.html import numbers
from mlfbuild.report.html.document import rendered
from mlfbuild.report.html.operators import Cell

if TYPE_CHECKING:
    from mlfbuild.report.fleet.git_history import Commit
    from mlfbuild.report.fleet.overview import FigureChange, Unreadable

_STYLES = ("colours", "page", "charts", "tables", "fleet", "print")
_SCRIPTS = ("theme", "chooser", "tables", "fleet")
_WIDTH, _HEIGHT = 1000, 100
"""The size of a plot in its own units; it is stretched to the width of the page."""
_SHOWN, _OF_IMAGE = 40, 10
"""Changes of all images, and of each one, whose plots show the others as well; CSV and JSON have all."""
_STATES = {"FAILED": "more", "passed": "less"}
_FACTS = ("cpu", "models", "sha256")
"""Columns that the chapter of an image has, and not the table."""


@dataclass(frozen=True)
class Plot:
    """A figure over time; paths are of SVG, from the oldest commit at the left to the newest at the right."""

    title: str
    change: Change
    """From the first to the last value."""
    least: str
    most: str
    line: str
    dots: str
    """The commits that changed it."""


@dataclass(frozen=True)
class ChangeRow:
    """A commit that changed a figure."""

    commit: str
    date: str
    subject: str
    image: str
    key: str
    """Of the image's chapter."""
    column: str
    change: Change


@dataclass(frozen=True)
class FleetCell:
    """A cell of the table: a figure with a bar, or a text with a class for its colour."""

    value: Cell | None
    text: str = ""
    small: str = ""
    state: str = ""
    growth: Change | None = None
    """Since the first commit; ``None`` in columns without it."""


@dataclass(frozen=True)
class FleetRow:
    """An image that is there at the end of the range."""

    key: str
    title: str
    report: str
    cells: tuple[FleetCell, ...]
    trend: str
    """The plot of its flash."""
    commit: str
    date: str


@dataclass(frozen=True)
class FleetChapter:
    """An image, also one that a commit removed."""

    key: str
    title: str
    report: str
    removed: str
    facts: tuple[tuple[str, str], ...]
    plots: tuple[Plot, ...]
    changes: tuple[ChangeRow, ...]
    more: int


def fleet_page(fleet: Fleet) -> str:
    """Return the overview as one HTML page, which loads nothing; names in it are untrusted.

    The same overview makes the same page::

        Path("fleet.html").write_text(fleet_page(fleet))
    """
    times = _times(fleet.commits)
    plots = {id(image): tuple(_plots(image, times, fleet.commits)) for image in fleet.images}
    keys = {(image.report, image.title): f"image-{index}" for index, image in enumerate(fleet.images)}
    columns = [column for column in known_columns(fleet) if column.name not in ("image", "target", *_FACTS)]
    grown = [name for name in GROWTH if any(image.growth(name) for image in fleet.present)]
    most = {column.name: max((_whole(image, column) or 0 for image in fleet.present), default=0) for column in columns}
    return rendered(
        "fleet.html",
        _STYLES,
        _SCRIPTS,
        summary=summary(fleet),
        span=[commit.date[:10] for commit in (fleet.commits[0], fleet.commits[-1])] if fleet.commits else [],
        titles=[(column.title, column.kind is not str, column.name in grown) for column in columns],
        rows=[
            FleetRow(
                keys[image.report, image.title],
                image.title,
                image.report,
                tuple(_cell(image, column, most[column.name], grown=column.name in grown) for column in columns),
                next((plot.line for plot in plots[id(image)] if plot.title == "flash"), ""),
                image.now.commit.id[:SHORT] if image.now.commit else "",
                image.now.date[:10],
            )
            for image in fleet.present
        ],
        size=(_WIDTH, _HEIGHT),
        changes=[_change_row(change, keys) for change in fleet.changes[:_SHOWN]],
        more=len(fleet.changes[_SHOWN:]),
        chapters=[_chapter(image, keys, plots[id(image)]) for image in fleet.images],
        unreadable=[_problem(each) for each in fleet.unreadable],
    )


def _whole(image: FleetImage, column: FleetColumn) -> int | None:
    value = image.now.value(column.name)
    return value if isinstance(value, int) else None


def _cell(image: FleetImage, column: FleetColumn, most: int, *, grown: bool) -> FleetCell:
    value = image.now.value(column.name)
    text = column.text(value) or numbers.NONE
    growth = image.growth(column.name)
    change = Change(0, growth) if grown and growth is not None else None
    if column.plotted:
        return FleetCell(Cell(text, numbers.step(_whole(image, column), most), column.name), growth=change)
    over = column.name == "budget" and isinstance(value, float) and value > 1
    return FleetCell(None, text, beside(image, column), "more" if over else _STATES.get(str(value), ""))


def _chapter(image: FleetImage, keys: dict[tuple[str, str], str], plots: tuple[Plot, ...]) -> FleetChapter:
    changes = image.changes[::-1]
    facts = [(COLUMNS[INDEX[name]].title, image.now.value(name)) for name in _FACTS]
    return FleetChapter(
        keys[image.report, image.title],
        image.title,
        image.report,
        f"{image.removed.id[:SHORT]} {image.removed.date[:10]} {image.removed.subject}" if image.removed else "",
        tuple((title, str(value)) for title, value in facts if value),
        plots,
        tuple(_change_row(change, keys) for change in changes[:_OF_IMAGE]),
        len(changes[_OF_IMAGE:]),
    )


def _plots(image: FleetImage, times: dict[str, int], commits: Sequence[Commit]) -> Iterator[Plot]:
    for index, column in enumerate(COLUMNS):
        # Most figures never change.
        if column.plotted and len({figures[index] for _, figures in image.versions} - {None}) > 1:
            values = [value for _, figures in image.versions if isinstance(value := figures[index], int)]
            line, dots = _line(image, column.name, times, commits)
            change = Change(values[0], values[-1])
            yield Plot(column.title, change, column.text(min(values)), column.text(max(values)), line, dots)


def _times(commits: Iterable[Commit]) -> dict[str, int]:
    """Return the horizontal place of each commit, by its id: by time, but never before the one before it."""
    places: dict[str, int] = {}
    latest = 0
    for commit in commits:
        places[commit.id] = latest = max(latest, commit.time)
    first, last = min(places.values(), default=0), latest
    return {name: round(_WIDTH * (time - first) / ((last - first) or 1)) for name, time in places.items()}


def _line(image: FleetImage, name: str, times: dict[str, int], commits: Sequence[Commit]) -> tuple[str, str]:
    """Return a figure as a line with steps, and dots where it changed; empty unless two versions have it."""
    index = INDEX[name]
    points = [
        (times[commit.id], value)
        for commit, figures in image.versions
        if commit is not None and isinstance(value := figures[index], int)
    ]
    values = [value for _, value in points]
    if len(set(values)) < 2:
        return "", ""
    least, most = min(values), max(values)
    heights = [round(_HEIGHT * (most - value) / (most - least)) for value in values]
    line, dots = f"M{points[0][0]} {heights[0]}", []
    for (x, value), y, (_, before) in zip(points[1:], heights[1:], points, strict=False):
        if value != before:
            line += f"H{x}V{y}"
            dots.append(f"M{x} {y}h0")
    end = times[image.removed.id] if image.removed else times[commits[-1].id]
    return f"{line}H{end}", "".join(dots)


def _change_row(change: FigureChange, keys: dict[tuple[str, str], str]) -> ChangeRow:
    commit = change.commit
    return ChangeRow(
        commit.id[:SHORT],
        commit.date[:10],
        commit.subject,
        change.title,
        keys[change.report, change.title],
        COLUMNS[INDEX[change.column]].title,
        Change(change.before, change.now),
    )


def _problem(found: Unreadable) -> str:
    text = f"{found.problem.place}: {found.problem.reason}"
    if found.commit is None:
        return text
    commit = f"commit {found.commit.id[:SHORT]}"
    return f"{text} (since {commit})" if found.current else f"{text} (in {commit}, which a later one replaced)"
