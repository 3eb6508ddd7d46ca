"""Evaluation of whole graphs."""

import numpy as np
import pytest

from mlfbuild.native.graph import DType, Graph, GraphError, Node, Quantization, State, Tensor, ops
from mlfbuild.native.graph.nodes import evaluate, evaluate_in_turn

INT8 = Quantization((0.5,), (0,))


def network() -> Graph:
    """Return y = x + c in int8, then z = y in float32."""
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
def test_wrong_inputs_are_refused(inputs: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(network(), inputs)


def counter(**changes: object) -> Graph:
    """Return total = kept + x, where total is kept and returned."""
    arguments = {
        "name": "counter",
        "tensors": [Tensor(name, (2,), DType.FLOAT32) for name in ("x", "kept", "total")],
        "nodes": [Node("sum", ops.Add(), ("x", "kept"), ("total",))],
        "inputs": ["x"],
        "outputs": ["total"],
        "states": [State("kept", "total", np.array([10, 0], np.float32))],
    }
    return Graph(**(arguments | changes))


def test_state_is_kept_between_runs() -> None:
    runs = [{"x": np.array([1, step], np.float32)} for step in range(4)]
    totals = [values["total"].tolist() for values in evaluate_in_turn(counter(), runs)]
    assert totals == [[11, 0], [12, 1], [13, 3], [14, 6]]
    assert evaluate(counter(), runs[3])["total"].tolist() == [11, 3]
    kept = {"kept": np.array([5, 5], np.float32)}
    assert evaluate(counter(), runs[3], kept)["total"].tolist() == [6, 8]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": [State("kept", "total", np.zeros(2, np.int8))]}, r"state 'kept' float32\[2\]: begins as int8\[2\]"),
        ({"states": [State("kept", "gone", np.zeros(2, np.float32))]}, "state 'gone' is not a tensor"),
        ({"states": [State("x", "total", np.zeros(2, np.float32))]}, "names an input or a state twice"),
        ({"states": []}, "reads 'kept' before anything wrote it"),
    ],
)
def test_invalid_states_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        counter(**changes)


def test_state_of_another_shape_is_refused() -> None:
    tensors = [
        Tensor("x", (2,), DType.FLOAT32),
        Tensor("kept", (1,), DType.FLOAT32),
        Tensor("total", (2,), DType.FLOAT32),
    ]
    with pytest.raises(GraphError, match=r"state 'kept' float32\[1\]: is left as 'total' float32\[2\]"):
        counter(tensors=tensors, states=[State("kept", "total", np.zeros(1, np.float32))])
