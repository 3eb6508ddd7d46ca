"""Evaluation of whole graphs."""

from __future__ import annotations

import numpy as np
import pytest

from mlfbuild.graph import DType, Graph, Node, Quantization, Tensor, ops
from mlfbuild.graph.evaluate import evaluate

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
