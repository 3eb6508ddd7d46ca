"""An evaluation as text: the value, the confusion of classes, their figures, the worst cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.core import counted, text_table
from mlfbuild.evaluation.evaluation import ClassFigures, Evaluation
from mlfbuild.evaluation.metric_kinds import METRICS

MATRIX = 12
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


@dataclass(frozen=True)
class EvaluationTable:
    """A table about an evaluation, for text and pages."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str
    """``l`` or ``r`` for each column."""


def evaluation_tables(result: Evaluation, *, verbose: bool = False) -> list[EvaluationTable]:
    """Return confusion, figures of classes, and the worst cases, as far as the metric has them.

    Of many classes, those with the worst figures are in the table, unless it is ``verbose``. Names may come from data.
    """
    tables = [_confusion(result), _figures(result, verbose=verbose), _worst(result)]
    return [table for table in tables if table.rows]


def evaluation_details(result: Evaluation, *, verbose: bool = False) -> str:
    """Return ``evaluation_tables`` as text, empty if there are none; print it with ``terminal_text``."""
    return "\n\n".join(
        text_table(table.rows, header=table.header, align=table.align, indent=2)
        for table in evaluation_tables(result, verbose=verbose)
    )


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


def _confusion(result: Evaluation) -> EvaluationTable:
    numbers = [each.number for each in result.classes]
    if 0 < len(numbers) <= MATRIX:
        cells = {(label, found): cases for label, found, cases in result.confusion}
        rows = [
            [class_title(result, label), *(f"{cells.get((label, found), 0) or '.'}" for found in numbers)]
            for label in numbers
        ]
        header = ["label \\ found", *map(str, numbers)]
        return EvaluationTable("Confusion", header, rows, "l" + "r" * len(numbers))
    rows = [
        [class_title(result, label), class_title(result, found), f"{cases:,}"]
        for label, found, cases in confusions(result)[:_PAIRS]
    ]
    return EvaluationTable("Confusion", ["label", "found", "cases"], rows, "llr")


def _figures(result: Evaluation, *, verbose: bool) -> EvaluationTable:
    overlap = ["IoU"] if result.metric == "iou" else []
    rows = [
        [class_title(result, each.number), f"{each.cases:,}", *map(_number, (each.precision, each.recall, each.f1))]
        + ([_number(each.iou)] if overlap else [])
        for each in worst_classes(result, len(result.classes) if verbose else _CLASSES)
    ]
    unit = "pixels" if overlap else "cases"
    return EvaluationTable("Classes", ["class", unit, "precision", "recall", "F1", *overlap], rows, "lrrrrr")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _worst(result: Evaluation) -> EvaluationTable:
    pairs = any(each.label is not None for each in result.worst)
    rows = [
        [str(each.case), f"{each.loss:.6g}"]
        + ([class_title(result, int(each.label or 0)), class_title(result, int(each.found or 0))] if pairs else [])
        for each in result.worst
    ]
    others = "error" if result.metric in METRICS else "value"
    loss = "margin" if pairs else {"iou": "1 - IoU"}.get(result.metric, others)
    header = ["worst case", loss, *(["label", "found"] if pairs else [])]
    return EvaluationTable("Worst cases", header, rows, "rrll")
