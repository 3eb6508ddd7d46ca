"""Choose a point: by a goal of the project file, or by what a user writes.

    min cycles where flash < 64 KiB and accuracy > 0.9
    max accuracy where latency@m7 <= 40 ms

A choice is ``min`` or ``max`` and a figure, and conditions that are all true of the point. ``accuracy`` is the value of
the model's metric, whose name is understood as well. Values have the units of the
project file. Of equal points, the faster one is chosen, then the smaller one, then the first one.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from mlfbuild.core import CheckFailedError, UsageError, listed, unknown
from mlfbuild.core.keys import parse_count, parse_duration, parse_size
from mlfbuild.exploration.points import ACCURACY, FIGURES, Exploration, ExploredPoint

_CHOICE = re.compile(r"\s*(min|max)\s+(\S+)(?:\s+where\s+(.+?))?\s*", re.DOTALL)
_CONDITION = re.compile(r"\s*([A-Za-z]\S*?)\s*(<=|>=|<|>|=)\s*(.+?)\s*", re.DOTALL)
_COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq,
}  # fmt: skip
_GOALS = {"latency": "", "size": "flash", ACCURACY: ACCURACY}
"""The figure of each goal; that of the latency is the speed of the exploration."""
_EXAMPLE = '"min cycles where flash < 64 KiB and accuracy > 0.9"'


@dataclass(frozen=True)
class _Choice:
    figure: str
    most: bool
    conditions: tuple[tuple[str, str, float], ...]


def check_choice(text: str, metric: str) -> None:
    """Raise ``UsageError`` if ``text`` is not a choice for a model with this ``metric``, before anything is built."""
    _parsed(text, metric)


def chosen(found: Exploration, text: str) -> ExploredPoint:
    """Return the point that the choice ``text`` names.

    Raises ``UsageError`` for a text that is not a choice, or a figure that the points do not have, and
    ``CheckFailedError`` if no point fulfils its conditions.
    """
    choice = _parsed(text, found.metric)
    for name in (choice.figure, *(name for name, _, _ in choice.conditions)):
        if all(point.figure(name) is None for point in found.points):
            reason = f"the points of {found.model} have no {name}"
            hint = "add evaluate to the model" if name == ACCURACY else f"use {listed(found.figures)}"
            raise UsageError("figure-unknown", place=f"--choose {text}", reason=reason, hint=hint)
    fitting = [point for point in found.measured if all(_holds(point, *each) for each in choice.conditions)]
    fitting = [point for point in fitting if point.figure(choice.figure) is not None]
    if not fitting:
        raise CheckFailedError("no-point-fits", place=f"--choose {text}", reason=_why_none(found, choice))

    def rank(point: ExploredPoint) -> tuple[float, ...]:
        value = point.figure(choice.figure) or 0
        return -value if choice.most else value, *_further(found, point)

    return min(fitting, key=rank)


def best_for(found: Exploration, goal: str) -> ExploredPoint | None:
    """Return the best point for a ``goal`` of those that miss no limit of ``evaluate``; ``None`` if there is none."""
    figure = _GOALS[goal] or found.speed
    fitting = [point for point in found.measured if not point.missed and point.figure(figure) is not None]
    return min(fitting, key=lambda point: (found.cost(point, figure), *_further(found, point)), default=None)


def _further(found: Exploration, point: ExploredPoint) -> tuple[float, ...]:
    return tuple(found.cost(point, name) for name in (found.speed, "flash", "ram", ACCURACY))


def _holds(point: ExploredPoint, name: str, compared: str, value: float) -> bool:
    figure = point.figure(name)
    return figure is not None and _COMPARED[compared](figure, value)


def _why_none(found: Exploration, choice: _Choice) -> str:
    """Return the reason, with the nearest value of the first condition that no point fulfils by itself."""
    for name, compared, value in choice.conditions:
        if not any(_holds(point, name, compared, value) for point in found.measured):
            known = [figure for point in found.measured if (figure := point.figure(name)) is not None]
            least, most = min(known, default=0), max(known, default=0)
            return f"no point has {name} {compared} {value:g}: they are from {least:g} to {most:g}"
    return "no point fulfils all conditions together"


def _parsed(text: str, metric: str) -> _Choice:
    match = _CHOICE.fullmatch(text)
    if match is None:
        raise _no_choice(text, "is not min or max, a figure, and conditions after where")
    conditions = re.split(r"\s+and\s+", match[3]) if match[3] else []
    figure = _figure(text, match[2], metric)
    return _Choice(figure, match[1] == "max", tuple(_condition(text, each, metric) for each in conditions))


def _condition(text: str, condition: str, metric: str) -> tuple[str, str, float]:
    match = _CONDITION.fullmatch(condition)
    if match is None:
        raise _no_choice(text, f"the condition {condition.strip()!r} is not a figure, a comparison and a value")
    name = _figure(text, match[1], metric)
    return name, match[2], _value(text, name, match[3])


def _figure(text: str, name: str, metric: str) -> str:
    if name == metric:  # as the table names it
        return ACCURACY
    plain = name.partition("@")[0]
    if plain not in FIGURES or (plain == ACCURACY and name != plain):
        raise unknown("figure", plain, FIGURES).error(f"--choose {text}")
    return name


def _value(text: str, name: str, written: str) -> float:
    plain = name.partition("@")[0]
    value: float | None
    if plain == ACCURACY:
        value = float(written) if re.fullmatch(r"[0-9]*\.?[0-9]+(e-?[0-9]+)?", written) else None
    else:
        parse = {"bytes": parse_size, "ns": parse_duration}.get(FIGURES[plain], parse_count)
        value = parse(written)
    if value is None:
        raise _no_choice(text, f"{written!r} is no value of {name}")
    return value


def _no_choice(text: str, reason: str) -> UsageError:
    return UsageError("not-a-choice", place=f"--choose {text}", reason=reason, hint=f"write it like {_EXAMPLE}")
