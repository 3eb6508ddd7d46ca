"""An evaluation as text: the value, the confusion of classes, their figures, the worst cases."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.core import counted, text_table
from mlfbuild.evaluation.evaluation import ClassFigures, Evaluation
from mlfbuild.evaluation.metric_kinds import METRICS

_MATRIX = 12
"""The most classes whose confusion is a matrix; of more, the most frequent pairs are listed."""
_CLASSES = 20
"""The most classes whose figures are listed; of more, those with the worst ones."""
_PAIRS = 10


def value_text(result: Evaluation, limits: Mapping[str, float]) -> str:
    """Return the value with its cases and ``limits``: "top1 0.966667, 450 cases (at-least 0.96)"."""
    against = f", {result.source_value:.6g} of the float network" if result.source_value is not None else ""
    wanted = ", ".join(f"{key} {limit:g}" for key, limit in limits.items())
    return f"{result.metric} {result.value:.6g}{against}, {counted(result.cases, 'case')}" + (
        f" ({wanted})" if wanted else ""
    )


def evaluation_details(result: Evaluation, *, verbose: bool = False) -> str:
    """Return confusion, figures of classes and the worst cases as tables; all classes if ``verbose``.

    Empty if the metric has none. Names in it may come from data: print it with ``terminal_text``.
    """
    parts = [_confusion(result), _figures(result, verbose=verbose), _worst(result)]
    return "\n\n".join(part for part in parts if part)


def class_title(result: Evaluation, number: int) -> str:
    """Return the number of a class, with its name if the data have one."""
    name = next((each.name for each in result.classes if each.number == number), "")
    return f"{number} {name}".rstrip()


def confusions(result: Evaluation) -> list[tuple[int, int, int]]:
    """Return the pairs (label, other class found, cases) with most cases first."""
    return sorted((pair for pair in result.confusion if pair[0] != pair[1]), key=lambda pair: (-pair[2], pair[:2]))


def worst_classes(result: Evaluation, most: int) -> list[ClassFigures]:
    """Return all classes, or the ``most`` that do worst if there are more, which have labels or results."""
    if len(result.classes) <= most:
        return list(result.classes)
    figure = "iou" if result.metric == "iou" else "f1"
    known = [each for each in result.classes if getattr(each, figure) is not None]
    return sorted(known, key=lambda each: (getattr(each, figure), each.number))[:most]


def _confusion(result: Evaluation) -> str:
    numbers = [each.number for each in result.classes]
    if not result.confusion:
        return ""
    if len(numbers) <= _MATRIX:
        cells = {(label, found): cases for label, found, cases in result.confusion}
        rows = [
            [class_title(result, label), *(f"{cells.get((label, found), 0) or '.'}" for found in numbers)]
            for label in numbers
        ]
        return text_table(rows, header=["label \\ found", *map(str, numbers)], align="l" + "r" * len(numbers), indent=2)
    rows = [
        [class_title(result, label), class_title(result, found), f"{cases:,}"]
        for label, found, cases in confusions(result)[:_PAIRS]
    ]
    return text_table(rows, header=["label", "found", "cases"], align="llr", indent=2)


def _figures(result: Evaluation, *, verbose: bool) -> str:
    overlap = ["IoU"] if result.metric == "iou" else []
    rows = [
        [class_title(result, each.number), f"{each.cases:,}", *map(_number, (each.precision, each.recall, each.f1))]
        + ([_number(each.iou)] if overlap else [])
        for each in worst_classes(result, len(result.classes) if verbose else _CLASSES)
    ]
    unit = "pixels" if overlap else "cases"
    return text_table(rows, header=["class", unit, "precision", "recall", "F1", *overlap], align="lrrrrr", indent=2)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _worst(result: Evaluation) -> str:
    found = any(each.label is not None for each in result.worst)
    rows = [
        [str(each.case), f"{each.loss:.6g}"]
        + ([class_title(result, int(each.label or 0)), class_title(result, int(each.found or 0))] if found else [])
        for each in result.worst
    ]
    others = "error" if result.metric in METRICS else "value"
    loss = "margin" if found else {"iou": "1 - IoU"}.get(result.metric, others)
    header = ["worst case", loss, *(["label", "found"] if found else [])]
    return text_table(rows, header=header, align="rrll"[: len(header)], indent=2)
