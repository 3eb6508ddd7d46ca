"""Counts of classes: how often each label got each class, and the figures that follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.evaluation.evaluation import ClassFigures

Array = npt.NDArray[Any]


_MOST = 2048
"""The most classes whose pairs are counted: a matrix of 32 MiB."""


class ClassCounts:
    """Counts of each class as a label, as a result, and as both; for few classes also the confusion matrix."""

    def __init__(self, classes: int) -> None:
        self._counts = np.zeros((3, classes), np.int64)
        self._matrix = np.zeros((classes, classes) if classes <= _MOST else (0, 0), np.int64)

    def add(self, labels: Array, found: Array) -> None:
        """Count pairs, both integers of shape (cases,) below the number of classes."""
        kinds = (labels, found, labels[labels == found])
        self._counts += [np.bincount(numbers, minlength=self._counts.shape[1]) for numbers in kinds]
        if self._matrix.size:
            np.add.at(self._matrix, (labels, found), 1)

    def merge(self, other: ClassCounts) -> None:
        """Add the counts of ``other``, which has as many classes."""
        self._counts += other._counts
        self._matrix += other._matrix

    def mean(self, figure: str) -> float:
        """Return the mean of ``f1`` or ``iou`` over the classes that a label or a result has."""
        found: list[float] = [value for each in self.figures() if (value := getattr(each, figure)) is not None]
        return sum(found) / len(found)

    def pairs(self) -> tuple[tuple[int, int, int], ...]:
        """Return (label, class found, cases) of all pairs that occur; none if there are too many classes."""
        places = np.argwhere(self._matrix)
        return tuple((int(label), int(found), int(self._matrix[label, found])) for label, found in places)

    def figures(self, names: Sequence[str] = ()) -> tuple[ClassFigures, ...]:
        """Return the figures of each class; ``names`` has those of the classes, if they have any."""
        labelled, found, right = self._counts.tolist()
        return tuple(
            ClassFigures(
                number,
                cases,
                precision=_part(hits, results),
                recall=_part(hits, cases),
                f1=_part(2 * hits, cases + results),
                iou=_part(hits, cases + results - hits),
                name=names[number] if number < len(names) else "",
            )
            for number, (hits, cases, results) in enumerate(zip(right, labelled, found, strict=True))
        )


def _part(count: int, whole: int) -> float | None:
    return count / whole if whole else None
