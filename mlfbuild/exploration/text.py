"""An exploration as a table and as JSON values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from mlfbuild.core import text_table
from mlfbuild.exploration.points import (
    ACCURACY,
    Exploration,
    ExploredPoint,
    figure_text,
    figure_title,
    setting_text,
    settings_text,
)

BEST, CURRENT = "*", "="


def exploration_text(found: Exploration) -> str:
    """Return a table of the points, those of the front first, and why others have no figures."""
    axes, figures, front = found.axes, found.figures, found.front
    rows = [
        (
            _marks(point, front),
            *(setting_text(point.settings.get(axis)) for axis in axes),
            *(figure_text(name, point.figure(name)) for name in figures),
        )
        for point in ordered_points(found)
    ]
    header = ("", *axes, *(figure_title(name, found.metric) for name in figures))
    table = text_table(rows, header=header, align="l" + "l" * len(axes) + "r" * len(figures))
    lines = [table, "", f"{BEST} beaten by no other point, {CURRENT} as in the project file"]
    lines += [
        f"not possible: {settings_text(point.settings)}: {point.problem}" for point in found.points if point.problem
    ]
    same = sum(len(point.same) for point in found.points)
    return "\n".join([*lines, *([f"{same} more have the same code as one of these"] if same else [])])


def ordered_points(found: Exploration) -> list[ExploredPoint]:
    """Return the points with figures: those of the front, then the others, the fastest first."""
    front = found.front
    rest = [point for point in found.measured if point not in front]
    return [*front, *sorted(rest, key=lambda point: found.cost(point, found.speed))]


def _marks(point: ExploredPoint, front: list[ExploredPoint]) -> str:
    return (BEST if point in front else "") + (CURRENT if point.current else "")


def exploration_json(found: Exploration) -> dict[str, Any]:
    """Return an exploration as JSON values; ``front`` on a point says that no other one beats it."""
    front = found.front
    figures = [name for name in found.figures if name != ACCURACY]
    points = [
        {**asdict(point), "worst": {name: point.figure(name) for name in figures}, "front": point in front}
        for point in found.points
    ]
    return {"model": found.model, "metric": found.metric, "speed": found.speed, "points": points}


def limits_missed(found: Exploration) -> Iterator[str]:
    """Yield a line for each point of the front that misses a limit of ``evaluate``."""
    for point in found.front:
        for text in point.missed:
            yield f"{settings_text(point.settings)}: {text}"
