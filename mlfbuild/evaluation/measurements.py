"""Accumulators of metrics: outputs and labels of one batch after another, then the result.

Each keeps counts or sums, and the worst few cases.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from mlfbuild.core import InputFileError, UsageError, quoted
from mlfbuild.evaluation.area_under_curve import AreaUnderCurve
from mlfbuild.evaluation.class_counts import ClassCounts
from mlfbuild.evaluation.evaluate_keys import EvaluateKeys
from mlfbuild.evaluation.evaluation import Evaluation, WorstCase
from mlfbuild.library import TensorInfo

Array = npt.NDArray[Any]
Function = Callable[[Array, Array], Any]
"""A metric of the user: outputs (cases, *shape) and labels (cases,) or expected outputs (cases, elements) of a batch
-> one number for each case."""

_WORST = 10
"""The worst cases of a result."""
_MAP_CLASSES = 256
"""The most classes of an output that has the number of a class for each pixel."""


class Measurement(Protocol):
    """A metric in the making."""

    def add(self, outputs: Array, expected: Array) -> None:
        """Add a batch: real numbers (cases, *shape), and labels (cases,) or expected outputs (cases, elements).

        Raises ``InputFileError``, whose place begins with the number of the case in the data, if labels are not classes
        of the output, or if the expected outputs have another size; ``UsageError`` for a function of the user that
        returns something else than a number for each case.
        """

    def result(self) -> Evaluation:
        """Return the value over all batches; raises ``InputFileError`` if it is not defined for such labels."""


def measure(
    keys: EvaluateKeys, tensor: TensorInfo, function: Function | None = None, classes: Sequence[str] = ()
) -> Measurement:
    """Return an accumulator for the metric of ``keys`` and outputs of ``tensor``.

    ``function`` is the metric of the user that ``keys`` name. ``classes`` are names of the labels, if there are any.
    """
    if keys.metric in {"mse", "mae"}:
        return _Errors(keys.metric)
    if keys.metric == "iou":
        return _Overlap(tensor, classes)
    if function is not None:
        return _OfUser(keys, function)
    return _Labels(keys.metric, tensor, classes)


class _Worst:
    """The cases with the greatest losses; of equal ones those that come first."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, int, WorstCase]] = []

    def add(self, first: int, losses: Array, labels: Array | None = None, found: Array | None = None) -> None:
        """Add cases from number ``first``; those without a loss have ``-inf``."""
        losses = np.nan_to_num(losses.astype(np.float64), nan=np.inf, posinf=np.inf, neginf=-np.inf)
        for at in np.argsort(-losses, kind="stable")[:_WORST]:
            if losses[at] > -np.inf:
                pair = (None, None) if labels is None or found is None else (int(labels[at]), int(found[at]))
                worst = WorstCase(first + int(at), float(losses[at]), *pair)
                heapq.heappush(self._kept, (worst.loss, -worst.case, worst))
        while len(self._kept) > _WORST:
            heapq.heappop(self._kept)

    def sorted(self) -> tuple[WorstCase, ...]:
        return tuple(worst for *_, worst in sorted(self._kept, key=lambda each: (-each[0], -each[1])))


def _scores(outputs: Array) -> Array:
    """Return scores (cases, classes): NaN is the lowest, and a single element the probability of class 1."""
    flat = outputs.reshape(len(outputs), -1)
    scores = np.where(np.isnan(flat), -np.inf, flat) if flat.dtype.kind == "f" else flat
    return np.concatenate([1 - scores, scores], axis=1) if scores.shape[1] == 1 else scores


class _Labels:
    """Metrics of networks that find one class for each case."""

    def __init__(self, metric: str, tensor: TensorInfo, classes: Sequence[str]) -> None:
        self._metric = metric
        self._names = classes
        # A network that ends with ArgMax has the number of the class as its output.
        self._is_class = _has_classes(tensor)
        self._counts = ClassCounts(0)  # until the first batch says how many classes there are
        self._curve = AreaUnderCurve() if metric == "auc" else None
        self._worst = _Worst()
        self._hits = self._cases = 0

    def add(self, outputs: Array, expected: Array) -> None:
        scores = self._one_hot(outputs) if self._is_class and outputs[0].size == 1 else _scores(outputs)
        cases, classes = scores.shape
        if self._cases == 0:
            self._counts = ClassCounts(classes)
        _check_labels(expected, classes, self._cases)
        of_label = np.take_along_axis(scores, expected[:, np.newaxis], axis=1)
        # The place of the label among the scores; of equal scores, the class with the lower number is before.
        before = (scores > of_label) | ((scores == of_label) & (np.arange(classes) < expected[:, np.newaxis]))
        missed = before.sum(axis=1) >= (5 if self._metric == "top5" else 1)
        found = scores.argmax(axis=1)
        self._counts.add(expected, found)
        if self._curve is not None:
            self._curve.add(scores, expected)
        # In float64, in which the difference of two infinities is not a number and counts as infinite.
        with np.errstate(invalid="ignore"):
            margin = scores.max(axis=1).astype(np.float64) - of_label[:, 0]
        self._worst.add(self._cases, np.where(missed, margin, -np.inf), expected, found)
        self._hits += int(cases - missed.sum())
        self._cases += cases

    def result(self) -> Evaluation:
        value = self._hits / self._cases
        if self._metric == "f1":
            value = self._counts.mean("f1")
        elif self._curve is not None:
            value = self._curve.mean()
        figures = [each for each in self._counts.figures(self._names) if each.f1 is not None or not self._is_class]
        return Evaluation(self._metric, value, self._cases, tuple(figures), self._counts.pairs(), self._worst.sorted())

    def _one_hot(self, outputs: Array) -> Array:
        found = outputs.reshape(-1, 1)
        _check_labels(found, _MAP_CLASSES, self._cases)
        if self._metric not in {"top1", "f1"}:
            raise InputFileError(
                "scores-missing",
                place=self._metric,
                reason="the output is the number of a class, and has no scores of the others",
                hint="use top1 or f1, or the output before ArgMax",
            )
        scores: Array = (found == np.arange(_MAP_CLASSES)).astype(np.float32)
        return scores


class _Errors:
    """Metrics of numbers."""

    def __init__(self, metric: str) -> None:
        self._metric = metric
        self._worst = _Worst()
        self._sum, self._cases = 0.0, 0

    def add(self, outputs: Array, expected: Array) -> None:
        flat = outputs.reshape(len(outputs), -1).astype(np.float64)
        _check_size(flat.shape[1], expected, self._cases)
        differences = flat - expected
        each = (np.square(differences) if self._metric == "mse" else np.abs(differences)).mean(axis=1)
        self._worst.add(self._cases, np.where(each == 0, -np.inf, each))
        self._sum += float(each.sum())
        self._cases += len(flat)

    def result(self) -> Evaluation:
        return Evaluation(self._metric, self._sum / self._cases, self._cases, worst=self._worst.sorted())


class _OfUser:
    """A function of the user."""

    def __init__(self, keys: EvaluateKeys, function: Function) -> None:
        self._metric, self._function = keys.metric, function
        self._sign = 1 if keys.smaller_is_better else -1
        self._worst = _Worst()
        self._sum, self._cases = 0.0, 0

    def add(self, outputs: Array, expected: Array) -> None:
        each = np.asarray(self._function(outputs, expected))
        if each.shape != (len(outputs),) or each.dtype.kind not in "biuf":
            raise UsageError(
                "metric-result",
                place=self._metric,
                reason=f"it returned {each.dtype}{list(each.shape)} for {len(outputs)} cases",
                hint="return an array with one number for each case, whose mean is the value",
            )
        each = each.astype(np.float64)
        self._worst.add(self._cases, self._sign * each)
        self._sum += float(each.sum())
        self._cases += len(outputs)

    def result(self) -> Evaluation:
        found = tuple(WorstCase(each.case, self._sign * each.loss) for each in self._worst.sorted())
        return Evaluation(self._metric, self._sum / self._cases, self._cases, worst=found)


class _Overlap:
    """Intersection over union of class maps."""

    def __init__(self, tensor: TensorInfo, classes: Sequence[str]) -> None:
        self._tensor, self._names = tensor, classes
        self._counts = ClassCounts(0)  # until the first batch says how many classes there are
        self._by_scores = True
        self._worst = _Worst()
        self._cases = 0

    def add(self, outputs: Array, expected: Array) -> None:
        maps = self._found(outputs, expected.shape[1])
        labels = expected.astype(np.int64)
        wrong = (labels != expected).any(axis=1)
        if wrong.any():
            raise _not_a_class(self._cases + int(wrong.argmax()), "the expected map holds fractions")
        classes = self._classes(outputs, expected.shape[1])
        self._by_scores = classes is not None
        if classes is None:
            classes = _MAP_CLASSES
            _check_labels(maps, classes, self._cases)
        _check_labels(labels, classes, self._cases)
        if self._cases == 0:
            self._counts = ClassCounts(classes)
        losses = []
        for label, found in zip(labels, maps, strict=True):
            own = ClassCounts(classes)
            own.add(label, found)
            losses.append(1 - own.mean("iou"))
            self._counts.merge(own)
        self._worst.add(self._cases, np.where(np.array(losses) == 0, -np.inf, losses))
        self._cases += len(maps)

    def result(self) -> Evaluation:
        # Of an output that is a map, only the classes that occur.
        figures = [each for each in self._counts.figures(self._names) if each.iou is not None or self._by_scores]
        return Evaluation(
            "iou", self._counts.mean("iou"), self._cases, tuple(figures), self._counts.pairs(), self._worst.sorted()
        )

    def _classes(self, outputs: Array, pixels: int) -> int | None:
        """Return the number of classes of which the output has scores; ``None`` if it has the classes themselves."""
        elements = int(outputs[0].size)
        if elements == pixels:
            return None if _has_classes(self._tensor) else 2
        if pixels == 0 or elements % pixels:
            _check_size(elements, np.zeros((1, pixels)), self._cases)
        return elements // pixels

    def _found(self, outputs: Array, pixels: int) -> Array:
        """Return the class of each pixel, (cases, pixels)."""
        classes, shape = self._classes(outputs, pixels), outputs.shape[1:]
        if classes is None:
            return np.asarray(outputs.reshape(len(outputs), -1), np.int64)
        if outputs[0].size == pixels:
            return np.asarray(outputs.reshape(len(outputs), -1) > 0.5, np.int64)
        # TFLite has the channels last, ONNX after the batch axis.
        axes = [axis for axis in {len(shape) - 1, min(1, len(shape) - 1)} if shape[axis] == classes]
        if len(axes) != 1:
            raise InputFileError(
                "iou-channels",
                place=quoted(self._tensor.name),
                reason=f"the axis of the {classes} classes does not follow from the shape {list(shape)}",
                hint="write a function of your own, metric: module:function",
            )
        return np.asarray(outputs.argmax(axis=axes[0] + 1).reshape(len(outputs), -1))


def _has_classes(tensor: TensorInfo) -> bool:
    """Return whether an element of ``tensor`` can be the number of a class, rather than a score."""
    return tensor.dtype.startswith(("int", "uint")) and tensor.scale is None


def _check_labels(labels: Array, classes: int, first: int) -> None:
    low = (labels < 0) | (labels >= classes)
    if low.any():
        at = np.unravel_index(int(low.argmax()), low.shape)
        reason = f"the label is {labels[at]}, and the output has the classes 0 to {classes - 1}"
        raise _not_a_class(first + int(at[0]), reason)


def _not_a_class(case: int, reason: str) -> InputFileError:
    hint = "number the classes as the network's output does, from 0"
    return InputFileError("label-out-of-range", place=f"case {case}", reason=reason, hint=hint)


def _check_size(elements: int, expected: Array, first: int) -> None:
    if expected.shape[1] != elements:
        raise InputFileError(
            "expected-output-shape",
            place=f"case {first}",
            reason=f"the expected output has {expected.shape[1]} elements, but the output of the network {elements}",
            hint="write the expected output of each case in the shape of the network's output",
        )
