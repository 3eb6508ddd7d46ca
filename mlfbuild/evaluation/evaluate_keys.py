"""The keys of a project file that say how a network is evaluated, and the limits that a metric can have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from mlfbuild.core import Mistake
from mlfbuild.core.keys import EXACT, Keys, Rule
from mlfbuild.datasets import DATA
from mlfbuild.evaluation.metric_kinds import FUNCTION, METRICS, is_error, metric_problem
from mlfbuild.library.keys import TensorName


def _finite(value: float) -> Mistake | None:
    if math.isfinite(value):
        return None
    return Mistake("limit-not-finite", reason=f"{value} is no number to compare with", hint="write a number")


METRIC = Rule(metric_problem, {"pattern": f"^({'|'.join(METRICS)}|{FUNCTION})$", "examples": list(METRICS)})
Limit = Annotated[float, EXACT, Rule(_finite)]

LIMITS: Mapping[str, str] = {"at-least": "less than", "at-most": "more than", "max-drop": "worse by more than"}
"""The keys of limits, and how the text about a missed one begins."""


@dataclass(frozen=True)
class EvaluateKeys(Keys):
    """The required quality of a network on a test set."""

    TITLE = "evaluate"

    data: DATA
    """Test set with labels or expected outputs: data/test.npz"""
    metric: Annotated[str, METRIC]
    """Metric: top1, top5, f1, auc, mse, mae, iou, or your function as module:function, such as metrics:score."""
    at_least: Limit | None = None
    """Least value that passes: 0.92"""
    at_most: Limit | None = None
    """Greatest value that passes, for mse, mae and functions that return errors: 0.01"""
    max_drop: Limit | None = None
    """Greatest loss against the float network from which `quantize` made this one: 0.01"""
    module: TensorName | None = None
    """Network of the archive, if it has several."""
    output: TensorName | None = None
    """Output that is measured. Default: the first."""

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by key, in the order of ``LIMITS``."""
        named = {key: getattr(self, key.replace("-", "_")) for key in LIMITS}
        return {key: limit for key, limit in named.items() if limit is not None}

    @property
    def smaller_is_better(self) -> bool:
        """Whether a smaller value is better: by the metric, or by the limit of a function of the user."""
        error = is_error(self.metric)
        return self.at_most is not None if error is None else error


def limit_problem(key: str, keys: Mapping[str, Any]) -> Mistake | None:
    """Return why the limit ``key`` does not fit the metric of ``keys``, both as written in the project file.

    Accuracies have lower limits from 0 to 1, errors have upper ones. The direction of a function of the user is that of
    its only limit. Values of the wrong type are accepted: the type of the key refuses them.
    """
    metric, value = keys.get("metric"), keys.get(key)
    if not isinstance(metric, str) or metric_problem(metric) or isinstance(value, bool):
        return None
    error = is_error(metric)
    both = {"at-least", "at-most"} & keys.keys()
    if error is None and ((len(both) == 2 and key == "at-most") or (key == "max-drop" and not both)):
        reason = f"whether a smaller {metric} is better follows from at-least or at-most, exactly one of them"
        return Mistake("limit-without-direction", reason=reason, hint="write one of them")
    if error is not None and key == ("at-least" if error else "at-most"):
        better, other = ("smaller", "at-most") if error else ("greater", "at-least")
        reason = f"a {better} {metric} is better, so that this limit would pass the worst network"
        return Mistake("limit-of-wrong-side", reason=reason, hint=f"write {other}")
    if error is None and key != "max-drop":
        return None
    most = math.inf if error is not False else 1
    if isinstance(value, int | float) and not 0 <= value <= most:
        hint = f"write {value / 100:g}" if 1 < value <= 100 else ""
        limits = "is 0 or more" if most > 1 else "is from 0 to 1"
        return Mistake("limit-out-of-range", reason=f"{key} of {metric} {limits}, not {value:g}", hint=hint)
    return None
