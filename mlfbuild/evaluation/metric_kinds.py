"""The names of metrics, and what each is: without numpy, because every project file is checked against them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mlfbuild.core import Mistake, unknown


@dataclass(frozen=True)
class MetricKind:
    """The properties of a metric that need no data."""

    title: str
    error: bool = False
    """Whether a smaller value is better; such values have no upper limit, others are from 0 to 1."""
    labels: bool = True
    """Whether a case has one class, rather than an expected output."""


METRICS: Mapping[str, MetricKind] = {
    "top1": MetricKind("top-1 accuracy"),
    "top5": MetricKind("top-5 accuracy"),
    "f1": MetricKind("macro F1"),
    "auc": MetricKind("ROC AUC"),
    "mse": MetricKind("mean squared error", error=True, labels=False),
    "mae": MetricKind("mean absolute error", error=True, labels=False),
    "iou": MetricKind("mean IoU", labels=False),
}
FUNCTION = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"
"""The form of a function of the user: ``module:function``."""


def metric_problem(name: str) -> Mistake | None:
    """Return why ``name`` is not a metric."""
    if name in METRICS or re.fullmatch(FUNCTION, name, re.ASCII):
        return None
    mistake = unknown("metric", name, METRICS)
    return Mistake(mistake.code, reason=mistake.reason, hint="use a known one, or module:function for your own")


def is_error(metric: str) -> bool | None:
    """Return whether a smaller value of ``metric`` is better; ``None`` if only its limits say so."""
    return METRICS[metric].error if metric in METRICS else None


def needs_labels(metric: str) -> bool | None:
    """Return whether ``metric`` needs labels rather than expected outputs; ``None`` if it takes what there is."""
    return METRICS[metric].labels if metric in METRICS else None
