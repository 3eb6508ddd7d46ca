"""The page of an exploration: a plot of its points by two figures, and a table with all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlfbuild.exploration import (
    ACCURACY,
    Exploration,
    ExploredPoint,
    figure_text,
    figure_title,
    ordered_points,
    setting_text,
    settings_text,
)
from mlfbuild.report.html.document import rendered

_STYLES = ("colours", "page", "charts", "tables", "fleet", "explore", "print")
_SCRIPTS = ("theme", "tables", "explore")
_WIDTH, _HEIGHT = 1000, 400
"""The size of the plot in its own units; it is stretched to the width of the page."""


@dataclass(frozen=True)
class PlottedPoint:
    """A point in the plot, and its row in the table."""

    key: str
    title: str
    """Its settings."""
    place: str
    """The path of its dot."""
    front: bool
    current: bool
    settings: tuple[str, ...]
    figures: tuple[tuple[str, str, float, str], ...]
    """Name, title, number and text of each figure."""
    missed: str


def exploration_page(found: Exploration) -> str:
    """Return ``found`` as one HTML page, which loads nothing; names in it are untrusted.

    The points are links to the rows of the table, so that the page can be used with a keyboard, and without scripts::

        Path("explore.html").write_text(exploration_page(read_explorations(path)["kws"]))
    """
    points, front, names = ordered_points(found), found.front, found.figures
    across = "flash" if "flash" in names else names[0] if names else ""
    down = found.speed
    places = _places(points, across, down)
    plotted = [
        PlottedPoint(
            f"p{number}",
            settings_text(point.settings),
            f"M{x} {y}h0",
            point in front,
            point.current,
            tuple(setting_text(point.settings.get(axis)) for axis in found.axes),
            tuple(
                (name, figure_title(name, found.metric), point.figure(name) or 0, figure_text(name, point.figure(name)))
                for name in names
            ),
            "; ".join(point.missed),
        )
        for number, (point, (x, y)) in enumerate(zip(points, places, strict=True))
    ]
    return rendered(
        "explore.html",
        _STYLES,
        _SCRIPTS,
        model=found.model,
        targets=", ".join(found.made_of),
        axes=found.axes,
        figures=[(name, figure_title(name, found.metric), _more_is_better(found, name)) for name in names],
        across=across,
        down=down,
        size=(_WIDTH, _HEIGHT),
        points=plotted,
        problems=[(settings_text(point.settings), point.problem) for point in found.points if point.problem],
    )


def _more_is_better(found: Exploration, name: str) -> bool:
    return name == ACCURACY and not found.smaller_is_better


def _places(points: Sequence[ExploredPoint], across: str, down: str) -> list[tuple[int, int]]:
    """Return the place of each point: less at the left and at the bottom."""
    columns = _scaled([point.figure(across) or 0 for point in points], _WIDTH)
    rows = _scaled([point.figure(down) or 0 for point in points], _HEIGHT)
    return [(x, _HEIGHT - y) for x, y in zip(columns, rows, strict=True)]


def _scaled(values: Sequence[float], length: int) -> list[int]:
    least, most = min(values, default=0), max(values, default=0)
    return [round(length * (value - least) / ((most - least) or 1)) for value in values]
