"""The exact area under ROC curves in memory that does not grow: scores are in temporary files, and sorted there."""

from __future__ import annotations

import tempfile
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import InputFileError

Array = npt.NDArray[Any]

_AT_ONCE = 1 << 16
"""Scores in memory at a time."""


class AreaUnderCurve:
    """The mean area under the curves of each class against all others."""

    def __init__(self) -> None:
        # Files without names, which vanish with this object.
        self._scores, self._labels = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        for file in (self._scores, self._labels):
            weakref.finalize(self, file.close)
        self._classes = 0

    def add(self, scores: Array, labels: Array) -> None:
        """Add scores (cases, classes) with their labels (cases,)."""
        self._classes = scores.shape[1]
        # Minus zero becomes zero, because the bits are compared.
        self._scores.write((scores.astype(np.float32) + np.float32(0)).tobytes())
        self._labels.write(labels.astype(np.int32).tobytes())

    def mean(self) -> float:
        """Return the mean over the classes that have cases of both kinds; raises ``InputFileError`` for none."""
        self._scores.flush()
        self._labels.flush()
        labels: Array = np.memmap(self._labels, np.int32, "r")
        scores: Array = np.memmap(self._scores, np.uint32, "r").reshape(-1, self._classes)
        areas = (_area(scores[:, number], labels, number) for number in range(self._classes))
        found = [area for area in areas if area is not None]
        if not found:
            raise InputFileError(
                "labels-of-one-class",
                place="auc",
                reason="all cases have one label, so that there is no curve",
                hint="add cases of other classes",
            )
        return sum(found) / len(found)


def _area(bits: Array, labels: Array, number: int) -> float | None:
    """Return the part of pairs, of a case of the class and another one, that the scores put in order."""
    with tempfile.TemporaryFile() as file:
        file.truncate(8 * len(labels))
        keys: Array = np.memmap(file, np.uint64, "r+")
        pairs = positives = 0
        # Equal scores count half: once all of them are in order, once none.
        for mark in (1, 0):
            positives = 0
            for start in range(0, len(labels), _AT_ONCE):
                part = slice(start, start + _AT_ONCE)
                own = labels[part] == number
                positives += int(own.sum())
                keys[part] = _ordered(bits[part]) << 1 | np.where(own, mark, 1 - mark).astype(np.uint64)
            keys.sort()
            pairs += _in_order(keys, mark)
        others = len(labels) - positives
    return pairs / 2 / positives / others if positives and others else None


def _ordered(bits: Array) -> Array:
    """Return integers in the order of the float32 with these bits."""
    negative = bits >> 31 != 0
    return np.where(negative, ~bits, bits | np.uint32(1 << 31)).astype(np.uint64)


def _in_order(keys: Array, mark: int) -> int:
    """Return the sum, over the sorted keys with ``mark`` as their last bit, of the others before them."""
    pairs = others = 0
    for start in range(0, len(keys), _AT_ONCE):
        own = (keys[start : start + _AT_ONCE] & 1) == mark
        before = others + np.cumsum(~own)
        pairs += int(before[own].sum())
        others += int((~own).sum())
    return pairs
