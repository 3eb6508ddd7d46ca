"""Metrics over batches: values by their definitions, figures of classes, worst cases, limits."""

import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlfbuild.core import InputFileError, UsageError
from mlfbuild.datasets import DataKeys
from mlfbuild.evaluation import EvaluateKeys, Evaluation, evaluation_details, limit_problem, measure, missed
from mlfbuild.library import TensorInfo
from support.errors import raises

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(5)
# Few different scores, so that many are equal.
SCORES = RANDOM.integers(-4, 4, (600, 1, 7)).astype(np.float32) / 4
LABELS = RANDOM.integers(0, 7, 600)


def keys(metric: str, **limits: float) -> EvaluateKeys:
    return EvaluateKeys(DataKeys(Path("test.npz")), metric, **limits)  # type: ignore[arg-type]


def evaluated(metric: str, outputs: Array, expected: Array, dtype: str = "float32", **more: Any) -> Evaluation:
    measured = measure(keys(metric), TensorInfo("y", dtype, outputs[0].nbytes, outputs.shape[1:]), **more)
    for start in range(0, len(outputs), 37):
        measured.add(outputs[start : start + 37], expected[start : start + 37])
    return measured.result()


def test_top_k_prefers_the_lower_of_equal_classes() -> None:
    flat = SCORES[:, 0]
    order = [sorted(range(7), key=lambda number, row=row: (-row[number], number)) for row in flat]
    for metric, places in (("top1", 1), ("top5", 5)):
        hits = [label in ranked[:places] for label, ranked in zip(LABELS, order, strict=True)]
        assert evaluated(metric, SCORES, LABELS).value == np.mean(hits)
    result = evaluated("top1", SCORES, LABELS)
    assert sum(cases for *_, cases in result.confusion) == result.cases == 600
    margin = flat.max(axis=1) - flat[np.arange(600), LABELS]
    losses = {case: margin[case] for case in range(600) if order[case][0] != LABELS[case]}
    worst = sorted(losses, key=lambda case: (-losses[case], case))[:10]
    assert [each.case for each in result.worst] == worst
    assert (result.worst[0].label, result.worst[0].found) == (LABELS[worst[0]], order[worst[0]][0])


def test_f1_is_the_mean_over_classes_that_occur() -> None:
    scores, labels = np.eye(4, dtype=np.float32)[[0, 0, 1, 1, 2]], np.array([0, 1, 1, 1, 0])
    # Class 0: 1 of 2 results and 1 of 2 labels. Class 1: 2 of 2 and 2 of 3. Class 2: a result only. Class 3: nothing.
    result = evaluated("f1", scores, labels)
    assert result.value == pytest.approx((1 / 2 + 4 / 5 + 0) / 3)
    assert [(each.cases, each.precision, each.recall) for each in result.classes] == [
        (2, 0.5, 0.5), (3, 1.0, 2 / 3), (0, 0.0, None), (0, None, None),
    ]  # fmt: skip


@pytest.mark.parametrize("columns", [1, 7])
def test_area_under_the_curve_counts_pairs(columns: int) -> None:
    scores, labels = SCORES[..., :columns], LABELS % max(2, columns)
    areas = []
    for number in range(columns) if columns > 1 else [1]:
        own = scores[:, 0, number if columns > 1 else 0]
        pairs = product(own[labels == number], own[labels != number])
        areas.append(np.mean([1.0 if one > other else 0.5 if one == other else 0.0 for one, other in pairs]))
    assert evaluated("auc", scores, labels).value == pytest.approx(np.mean(areas), abs=1e-12)
    with raises(InputFileError, "labels-of-one-class", "auc"):
        evaluated("auc", scores, labels * 0)


def test_one_element_is_the_probability_of_class_1() -> None:
    result = evaluated("top1", np.array([[0.2], [0.5], [0.6], [0.9]], np.float32), np.array([0, 0, 1, 0]))
    assert (result.value, result.worst[0].case, len(result.classes)) == (0.75, 3, 2)


def test_the_output_of_argmax_is_a_class() -> None:
    result = evaluated("top1", np.array([[3], [1], [3]], np.int32), np.array([3, 3, 3]), "int32")
    assert (result.value, [each.number for each in result.classes]) == (2 / 3, [1, 3])


def test_errors_are_means_over_all_elements() -> None:
    outputs, expected = np.array([[[1.0, 2.0]], [[0.0, 4.0]]], np.float32), np.array([[1.0, 0.0], [1.0, 1.0]])
    assert evaluated("mse", outputs, expected).value == (4 + 1 + 9) / 4
    result = evaluated("mae", outputs, expected)
    assert (result.value, result.worst[0].case) == ((2 + 1 + 3) / 4, 1)
    with raises(InputFileError, "expected-output-shape", "case 0"):
        evaluated("mse", outputs, expected[:, :1])


@pytest.mark.parametrize("channels", ["last", "first", "none"])
def test_overlap_of_class_maps(channels: str) -> None:
    found, expected = RANDOM.integers(0, 3, (8, 4, 5)), RANDOM.integers(0, 3, (8, 4, 5))
    outputs = np.eye(3, dtype=np.float32)[found][:, np.newaxis]
    outputs = np.moveaxis(outputs, -1, 2) if channels == "first" else outputs
    dtype = "float32"
    if channels == "none":
        outputs, dtype = found[:, np.newaxis].astype(np.int32), "int32"
    result = evaluated("iou", outputs, expected.reshape(8, -1).astype(np.float32), dtype)
    overlaps = [
        ((found == number) & (expected == number)).sum() / ((found == number) | (expected == number)).sum()
        for number in range(3)
    ]
    assert result.value == pytest.approx(np.mean(overlaps))
    assert [each.iou for each in result.classes] == pytest.approx(overlaps)


def test_a_function_returns_a_number_for_each_case() -> None:
    result = evaluated("own:score", SCORES, LABELS, function=lambda outputs, labels: outputs[:, 0, 0] * labels)
    assert result.value == pytest.approx(np.mean(SCORES[:, 0, 0] * LABELS))
    with raises(UsageError, "metric-result", "own:score"):
        evaluated("own:score", SCORES, LABELS, function=lambda outputs, _: outputs.mean())


def test_labels_are_classes_of_the_output() -> None:
    for wrong in (7, -1):
        labels = np.where(np.arange(600) == 123, wrong, LABELS)
        with raises(InputFileError, "label-out-of-range", "case 123"):
            evaluated("top1", SCORES, labels)


def test_what_is_no_number_misses_every_limit() -> None:
    outputs = np.full((3, 2), np.nan, np.float32)
    assert [*missed(evaluated("mse", outputs, np.zeros((3, 2))), keys("mse", at_most=1e9))] == ["at-most"]
    assert evaluated("top1", outputs, np.array([1, 1, 1])).value == 0


def test_a_drop_is_compared_in_the_direction_of_the_metric() -> None:
    for value, source, metric, limit, expected in (
        (0.91, 0.92, "top1", 0.01, []),
        (0.90, 0.92, "top1", 0.01, ["max-drop"]),
        (0.95, 0.92, "top1", 0.01, []),
        (0.05, 0.02, "mse", 0.01, ["max-drop"]),
        (0.01, 0.02, "mse", 0.01, []),
    ):
        result = Evaluation(metric, value, 10, source_value=source)
        assert [*missed(result, keys(metric, max_drop=limit))] == expected, (metric, value)


@pytest.mark.parametrize(
    ("key", "given", "code"),
    [
        ("at-least", {"metric": "top1", "at-least": 1}, None),
        ("at-least", {"metric": "top1", "at-least": 92}, "limit-out-of-range"),
        ("at-least", {"metric": "mse", "at-least": 0.1}, "limit-of-wrong-side"),
        ("at-most", {"metric": "iou", "at-most": 0.1}, "limit-of-wrong-side"),
        ("at-most", {"metric": "mae", "at-most": 12}, None),
        ("at-most", {"metric": "mae", "at-most": -1}, "limit-out-of-range"),
        ("max-drop", {"metric": "f1", "max-drop": 1.5}, "limit-out-of-range"),
        ("max-drop", {"metric": "own:score", "max-drop": 0.1}, "limit-without-direction"),
        ("at-most", {"metric": "own:score", "at-most": 1, "at-least": 0}, "limit-without-direction"),
        ("at-least", {"metric": "own:score", "at-least": -7}, None),
    ],
)
def test_limits_fit_their_metric(key: str, given: dict[str, Any], code: str | None) -> None:
    mistake = limit_problem(key, given)
    assert (mistake and mistake.code) == code


def test_many_classes_are_shortened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scores, labels = RANDOM.random((200, 30), np.float32), RANDOM.integers(0, 30, 200)
    result = evaluated("auc", scores, labels)
    short, whole = evaluation_details(result), evaluation_details(result, verbose=True)
    assert len(whole.splitlines()) - len(short.splitlines()) == 10
    assert [*tmp_path.iterdir()] == []
