"""Evaluation of whole graphs, and the search for the first difference."""

from __future__ import annotations

import numpy as np
import pytest

from mlfbuild.graph import DType, Graph, Node, Quantization, Tensor, ops
from mlfbuild.graph.evaluate import evaluate, first_difference

INT8 = Quantization((0.5,), (0,))


def network() -> Graph:
    """y = x + c in int8, then z = y in float32."""
    return Graph(
        "net",
        [
            Tensor("x", (2, 3), DType.INT8, INT8),
            Tensor("c", (3,), DType.INT8, INT8, np.array([1, 2, 3], np.int8)),
            Tensor("y", (2, 3), DType.INT8, INT8),
            Tensor("z", (2, 3), DType.FLOAT32),
        ],
        [Node("sum", ops.Add(), ("x", "c"), ("y",)), Node("real", ops.Dequantize(), ("y",), ("z",))],
        ["x"],
        ["z"],
    )


X = np.array([[1, 2, 3], [4, 5, 100]], np.int8)


def test_evaluate_returns_every_tensor() -> None:
    values = evaluate(network(), {"x": X})
    assert list(values) == ["c", "x", "y", "z"]
    assert values["y"].tolist() == [[2, 4, 6], [5, 7, 103]]
    assert values["z"].tolist() == [[1, 2, 3], [2.5, 3.5, 51.5]]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "input 'x' has no value"),
        ({"x": X[0]}, r"input 'x' is int8\[3\], should be 'x' int8\[2, 3\]"),
        ({"x": X.astype(np.int16)}, r"input 'x' is int16\[2, 3\], should be 'x' int8\[2, 3\]"),
    ],
)
def test_wrong_inputs(inputs: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(network(), inputs)


def test_equal_runs_do_not_differ() -> None:
    values = evaluate(network(), {"x": X})
    assert first_difference(network(), values, values) is None


def test_the_first_node_that_differs_is_named() -> None:
    expected = evaluate(network(), {"x": X})
    got = {name: value.copy() for name, value in expected.items()}
    got["y"][1, 1] += 1
    got["y"][1, 2] -= 1
    got["z"][:] = 0
    difference = first_difference(network(), expected, got)
    assert difference is not None
    assert (difference.node.name, difference.tensor.name, difference.count) == ("sum", "y", 2)
    assert (difference.index, difference.expected, difference.got) == ((1, 1), 7, 8)
    assert str(difference) == "ADD 'sum': 2 of 6 elements differ, at [1, 1] expected 7, got 8"


def test_float_tensors_may_differ_a_little() -> None:
    expected = evaluate(network(), {"x": X})
    close = {"z": expected["z"] + np.float32(4e-4)}  # the greatest magnitude is 51.5
    assert first_difference(network(), expected, close) is None
    far = {"z": close["z"].copy()}
    far["z"][0, 2] += 1
    difference = first_difference(network(), expected, far)
    assert difference is not None
    assert (difference.index, difference.expected, difference.count) == ((0, 2), 3.0, 1)


def test_not_a_number_differs() -> None:
    expected = evaluate(network(), {"x": X})
    got = {"z": expected["z"].copy()}
    got["z"][1, 0] = np.nan
    difference = first_difference(network(), expected, got)
    assert difference is not None
    assert difference.index == (1, 0)


def test_tensors_that_a_run_lacks_are_passed_over() -> None:
    expected = evaluate(network(), {"x": X})
    assert first_difference(network(), expected, {}) is None
