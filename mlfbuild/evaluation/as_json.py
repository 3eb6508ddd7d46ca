"""Evaluations as JSON values, which cannot have NaN and infinity, and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from mlfbuild.evaluation.evaluation import ClassFigures, Evaluation, WorstCase
from mlfbuild.evaluation.text import MATRIX, confusions, worst_classes


def evaluation_json(result: Evaluation, most: int | None = None) -> dict[str, Any]:
    """Return ``result`` as JSON values; ``None`` stands for what is not a finite number.

    With ``most``, there are no more classes than that, the worst ones, and of many classes no more pairs, those with
    the most cases.
    """
    if most is not None:
        pairs = result.confusion if len(result.classes) <= MATRIX else tuple(confusions(result)[:most])
        result = replace(result, confusion=pairs, classes=tuple(worst_classes(result, most)))
    found: dict[str, Any] = _finite(asdict(result))
    return found


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def evaluation_in(values: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation of which ``values`` are the JSON; raises ``LookupError`` or ``TypeError`` for others."""
    return Evaluation(
        values["metric"],
        _number(values["value"]),
        values["cases"],
        tuple(ClassFigures(**each) for each in values["classes"]),
        tuple((label, found, cases) for label, found, cases in values["confusion"]),
        tuple(WorstCase(**{**each, "loss": _number(each["loss"])}) for each in values["worst"]),
        values.get("source_value"),
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
