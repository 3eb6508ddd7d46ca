"""The result of an evaluation, and what it misses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mlfbuild.evaluation.evaluate_keys import LIMITS, EvaluateKeys


@dataclass(frozen=True)
class ClassFigures:
    """The results of one class; figures that would divide by zero are ``None``."""

    number: int
    cases: int
    """Cases, or pixels of class maps, that have it as their label."""
    precision: float | None
    recall: float | None
    f1: float | None
    iou: float | None
    name: str = ""


@dataclass(frozen=True)
class WorstCase:
    """A case that spoils the value."""

    case: int
    """Its index in the data, from 0."""
    loss: float
    """By how much the highest score exceeds that of the label, or the error, or the value of the function."""
    label: int | None = None
    found: int | None = None
    """The class with the highest score."""


@dataclass(frozen=True)
class Evaluation:
    """The value of a metric over all cases, and where it comes from."""

    metric: str
    value: float
    cases: int
    classes: tuple[ClassFigures, ...] = ()
    confusion: tuple[tuple[int, int, int], ...] = ()
    """(label, class found, cases) of all pairs that occur, by label."""
    worst: tuple[WorstCase, ...] = ()
    """The worst first."""
    source_value: float | None = None
    """The value of the float network from which this one was quantised, if it was measured."""


def missed(result: Evaluation, keys: EvaluateKeys) -> dict[str, str]:
    """Return each limit of ``keys`` that ``result`` misses, with a clause such as "top1 is 0.8967, less than 0.92"."""
    return {key: f"{result.metric} is {result.value:.6g}, {LIMITS[key]} {text}" for key, text in _missed(result, keys)}


def _missed(result: Evaluation, keys: EvaluateKeys) -> Iterator[tuple[str, str]]:
    # Written so that NaN, which compares false with everything, misses them.
    if keys.at_least is not None and not result.value >= keys.at_least:
        yield "at-least", f"{keys.at_least:g}"
    if keys.at_most is not None and not result.value <= keys.at_most:
        yield "at-most", f"{keys.at_most:g}"
    if keys.max_drop is not None and result.source_value is not None:
        drop = result.value - result.source_value
        drop = drop if keys.smaller_is_better else -drop
        # Differences of decimal fractions are not exact: 0.92 - 0.91 is 0.010000000000000009.
        if not (drop <= keys.max_drop or math.isclose(drop, keys.max_drop, rel_tol=1e-9)):
            yield "max-drop", f"{keys.max_drop:g} than {result.source_value:.6g} of the float network"
