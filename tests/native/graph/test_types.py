"""Tensors, nodes and graphs are checked on construction."""

import pickle
from collections.abc import Sequence

import numpy as np
import pytest

from mlfbuild.native.graph import DType, Graph, GraphError, Node, Quantization, Tensor, ops

X = Tensor("x", (1, 4), DType.FLOAT32)
Y = Tensor("y", (4,), DType.FLOAT32)
Z = Tensor("z", (2, 2), DType.FLOAT32)
EMPTY = Tensor("e", (0, 4), DType.FLOAT32)
C = Tensor("c", (4,), DType.FLOAT32, data=np.zeros(4, np.float32))


def reshape(source: str, target: str) -> Node:
    return Node(target, ops.Reshape(), (source,), (target,))


def graph(
    nodes: Sequence[Node] = (reshape("x", "y"), reshape("y", "z")),
    *,
    tensors: Sequence[Tensor] = (X, Y, Z, C),
    inputs: Sequence[str] = ("x",),
    outputs: Sequence[str] = ("z",),
) -> Graph:
    return Graph("net", tensors, nodes, inputs, outputs)


def test_quantisation_of_one_and_of_many_scales() -> None:
    single = Quantization((0.5,), (3,))
    assert (single.scale, single.zero_point, single.per_channel) == (0.5, 3, False)
    many = Quantization((0.5, 0.25), (0, 0), axis=1)
    assert many.per_channel
    with pytest.raises(ValueError, match="too many values"):
        _ = many.scale


@pytest.mark.parametrize(
    ("scales", "zero_points"),
    [((), ()), ((1.0, 2.0), (0,)), ((0.0,), (0,)), ((-1.0,), (0,)), ((float("nan"),), (0,)), ((float("inf"),), (0,))],
)
def test_wrong_quantisation_is_refused(scales: tuple[float, ...], zero_points: tuple[int, ...]) -> None:
    with pytest.raises(GraphError) as caught:
        Quantization(scales, zero_points)
    assert caught.value.where == "quantisation"


def test_tensor() -> None:
    tensor = Tensor("t", (2, 3), DType.INT32)
    assert (tensor.elements, tensor.size, tensor.constant) == (6, 24, False)
    assert str(tensor) == "'t' int32[2, 3]"
    assert Tensor("scalar", (), DType.INT8).elements == 1


def test_constant_data_becomes_read_only() -> None:
    data = np.zeros(3, np.int8)
    assert Tensor("t", (3,), DType.INT8, data=data).constant
    with pytest.raises(ValueError, match="read-only"):
        data[0] = 1


def per_axis(axis: int) -> dict[str, object]:
    return {"quantization": Quantization((1.0, 1.0), (0, 0), axis=axis)}


@pytest.mark.parametrize(
    ("fields", "where", "facts"),
    [
        ({"name": ""}, "tensor", ["name"]),
        ({"shape": (2, -2)}, "tensor 't'", ["[2, -2]"]),
        ({"shape": (-1,)}, "tensor 't'", ["[-1]"]),
        (per_axis(1), "tensor 't'", ["2 scales", "dimension 1", "[2, 3]"]),
        (per_axis(2), "tensor 't'", ["2 scales", "dimension 2", "[2, 3]"]),
        (per_axis(-2), "tensor 't'", ["2 scales", "dimension -2", "[2, 3]"]),
        ({"data": np.zeros((2, 2), np.int8)}, "tensor 't'", ["int8[2, 2]", "int8[2, 3]"]),
        ({"data": np.zeros((2, 3), np.int16)}, "tensor 't'", ["int16[2, 3]", "int8[2, 3]"]),
    ],
)
def test_wrong_tensor_is_refused(fields: dict[str, object], where: str, facts: list[str]) -> None:
    with pytest.raises(GraphError) as caught:
        Tensor(**{"name": "t", "shape": (2, 3), "dtype": DType.INT8, **fields})  # type: ignore[arg-type]
    assert_names(caught.value, where, facts)


def assert_names(error: GraphError, where: str, facts: list[str]) -> None:
    assert error.where == where
    assert [fact for fact in facts if fact not in error.reason] == [], error.reason


def test_graph() -> None:
    net = graph()
    assert [tensor.name for tensor in net.tensors.values()] == ["x", "y", "z", "c"]
    assert net.inputs_of(net.nodes[1]).present == (Y,)
    assert net.outputs_of(net.nodes[1]) == (Z,)
    assert net.tensor("z") is Z


def test_constants_are_those_in_use_in_order_of_use() -> None:
    other = Tensor("b", (4,), DType.FLOAT32, data=np.ones(4, np.float32))
    add = Node("y", ops.Add(), ("b", "c"), ("y",))
    unused = Tensor("unused", (1,), DType.FLOAT32, data=np.ones(1, np.float32))
    net = graph([add], tensors=(X, Y, C, other, unused), outputs=("y", "c"))
    assert [tensor.name for tensor in net.constants] == ["b", "c"]


def test_an_optional_input_may_be_absent() -> None:
    weights = Tensor("w", (2, 4), DType.FLOAT32, data=np.zeros((2, 4), np.float32))
    output = Tensor("o", (1, 2), DType.FLOAT32)
    node = Node("o", ops.FullyConnected(), ("x", "w", None), ("o",))
    net = graph([node], tensors=(X, weights, output), outputs=("o",))
    inputs = net.inputs_of(node)
    assert inputs.present == tuple(inputs[:2]) == (X, weights)
    assert inputs.optional(2) is inputs.optional(3) is None
    for index in (2, 3):
        with pytest.raises(GraphError) as caught:
            inputs[index]
        assert_names(caught.value, "FULLY_CONNECTED 'o'", [f"operand {index}"])


@pytest.mark.parametrize(
    ("changes", "where", "facts"),
    [
        ({"tensors": (X, X)}, "tensor 'x'", ["twice"]),
        ({"inputs": ("x", "w")}, "graph 'net'", ["input 'w'"]),
        ({"outputs": ("w",)}, "graph 'net'", ["output 'w'"]),
        ({"inputs": ("x", "x")}, "graph 'net'", ["twice"]),
        ({"inputs": ("x", "c")}, "tensor 'c'", ["constant"]),
        ({"nodes": ()}, "graph 'net'", ["output 'z'"]),
        ({"nodes": (reshape("w", "y"),)}, "RESHAPE 'y'", ["'w'"]),
        ({"nodes": (reshape("e", "y"),), "tensors": (X, Y, EMPTY), "inputs": ("e",), "outputs": ("y",)}, "RESHAPE 'y'",
         ["'e'"]),
        ({"nodes": (reshape("x", "w"),)}, "RESHAPE 'w'", ["'w'"]),
        ({"nodes": (reshape("x", "c"),)}, "RESHAPE 'c'", ["writes 'c'"]),
        ({"nodes": (reshape("c", "x"),)}, "RESHAPE 'x'", ["writes 'x'"]),
        ({"nodes": (reshape("x", "y"), reshape("x", "y"))}, "RESHAPE 'y'", ["writes 'y'"]),
        ({"nodes": (reshape("y", "z"), reshape("x", "y"))}, "RESHAPE 'z'", ["reads 'y'", "cycle"]),
        ({"nodes": (reshape("z", "y"), reshape("y", "z"))}, "RESHAPE 'y'", ["reads 'z'", "cycle"]),
        ({"nodes": (Node("z", ops.Reshape(), ("x", "y"), ("z",)),), "inputs": ("x", "y")}, "RESHAPE 'z'", ["2 inputs"]),
    ],
)  # fmt: skip
def test_wrong_graph_is_refused(changes: dict[str, object], where: str, facts: list[str]) -> None:
    with pytest.raises(GraphError) as caught:
        graph(**changes)  # type: ignore[arg-type]
    assert_names(caught.value, where, facts)


def test_a_graph_error_survives_a_worker_process() -> None:
    error = pickle.loads(pickle.dumps(GraphError("tensor 't'", "is wrong")))
    assert (str(error), error.where, error.reason) == ("tensor 't': is wrong", "tensor 't'", "is wrong")
