"""ONNX networks with tensors that have no elements, against ONNX's evaluator."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.core.errors import MlfError
from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_on_host
from support.native import compile_network, generated
from support.onnx_checks import as_declared
from support.onnx_models import reference
from support.refusals import assert_onnx_refused

Array = npt.NDArray[Any]
NOTHING = np.zeros((2, 0, 3), np.float32)


def written(
    node: onnx.NodeProto,
    inputs: Mapping[str, Array],
    constants: Mapping[str, Array],
    types: Mapping[str, int] | None = None,
) -> tuple[bytes, list[Array]]:
    """Return the model of ``node``, whose outputs have the shapes that ONNX's evaluator computes, and its results."""
    ports = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
             for name, value in inputs.items()]  # fmt: skip
    stored = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    outputs = [helper.make_tensor_value_info(name, (types or {}).get(name, 1), []) for name in node.output]
    made = helper.make_model(
        helper.make_graph([node], "graph", ports, outputs, stored),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=8,
    )  # fmt: skip
    results = reference(made.SerializeToString(), inputs)
    return as_declared(made.SerializeToString(), results), results


def test_networks_with_inputs_and_outputs_without_elements() -> None:
    """Their places in the interface remain, and their pointers are not checked."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Concat", ["r", "e"], ["y"], axis=0),
             helper.make_node("ReduceMax", ["e"], ["m"], keepdims=0), helper.make_node("Slice", ["x", "s", "t"], ["z"]),
             helper.make_node("Neg", ["z"], ["n"])]  # fmt: skip
    shapes = {"x": [2, 3], "e": [0, 3], "y": [2, 3], "m": [], "z": [0, 3], "n": [0, 3]}
    ports = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()}
    stored = [numpy_helper.from_array(np.array([at]), name) for name, at in (("s", 2), ("t", 9))]
    graph = helper.make_graph(nodes, "graph", [ports["x"], ports["e"]], [ports[name] for name in "ymzn"], stored)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    x = np.array([[-1, 2, 3], [4, -5, 6]], np.float32)
    network = parse_onnx(made.SerializeToString(), "net", "net.onnx")
    assert [note.split("'")[1] for note in network.notes] == ["e", "z", "n"]
    library = compile_network(network)
    assert [f"puts->{name} == NULL" in generated(library) for name in "xeyz"] == [True, False, True, False]
    results = run_on_host(library, [x, np.zeros((0, 3), np.float32)])
    assert [result.shape for result in results] == [(2, 3), (), (0, 3), (0, 3)]
    np.testing.assert_array_equal(results[0], np.maximum(x, 0))
    assert results[1] == -np.inf


REDUCTIONS = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMin", "ReduceProd",
              "ReduceSum", "ReduceSumSquare")  # fmt: skip


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_nothing(name: str, computed: bool) -> None:
    """Computed axes follow from the shape of the result."""
    axes = {"a": np.array([1])}
    node = helper.make_node(name, ["x", "a"], ["y"])
    data, (wanted,) = written(node, {"x": NOTHING, **(axes if computed else {})}, {} if computed else axes)
    made = evaluate(parse_onnx(data, "net", "net.onnx"), {"x": NOTHING, **axes})
    np.testing.assert_array_equal(made["y"], wanted)
    assert wanted.shape == (2, 1, 3)


def test_mean_of_nothing() -> None:
    node = helper.make_node("ReduceMean", ["x", "a"], ["y"], keepdims=0)
    ports = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [2, 0]), ("y", [2]))]
    graph = helper.make_graph([node], "graph", ports[:1], ports[1:], [numpy_helper.from_array(np.array([1]), "a")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    network = parse_onnx(made.SerializeToString(), "net", "net.onnx")
    assert np.isnan(evaluate(network, {"x": np.zeros((2, 0), np.float32)})["y"]).all()


X = np.arange(6, dtype=np.float32).reshape(2, 3)
VANISHING: dict[str, tuple[dict[str, Array], dict[str, Array], dict[str, Any]]] = {
    "Add": ({"x": NOTHING, "e": np.ones((1, 1, 3), np.float32)}, {}, {}),
    "Conv": ({"x": np.ones((1, 4, 6, 6), np.float32)}, {"w": np.ones((0, 4, 2, 2), np.float32)}, {}),
    "Expand": ({"x": np.ones((1, 3), np.float32)}, {"s": np.array([0, 3])}, {}),
    "Gather": ({"x": X}, {"i": np.zeros(0, np.int64)}, {}),
    "MatMul": ({"x": NOTHING, "e": np.ones((3, 4), np.float32)}, {}, {}),
    "Pad": ({"x": X}, {"p": np.array([0, -3, 0, 0])}, {}),
    "Reshape": ({"x": NOTHING}, {"s": np.array([0, 5])}, {"allowzero": 1}),
    "Slice": ({"x": X}, {"s": np.array([1]), "t": np.array([1])}, {}),
    "Softmax": ({"x": NOTHING}, {}, {}),
    "Tile": ({"x": X}, {"r": np.array([1, 0])}, {}),
    "Transpose": ({"x": NOTHING}, {}, {}),
    "Where": ({"c": np.zeros((0,), bool), "x": np.zeros(0, np.float32), "e": np.zeros(1, np.float32)}, {}, {}),
}


@pytest.mark.parametrize("name", VANISHING)
def test_results_without_elements(name: str) -> None:
    inputs, constants, attributes = VANISHING[name]
    node = helper.make_node(name, [*inputs, *constants], ["y"], **attributes)
    if name in {"Conv", "Pad"}:  # ONNX's evaluator fails
        shape = (1, 0, 5, 5) if name == "Conv" else (2, 0)
        ports = [helper.make_tensor_value_info("x", 1, inputs["x"].shape), helper.make_tensor_value_info("y", 1, shape)]
        stored = [numpy_helper.from_array(value, key) for key, value in constants.items()]
        graph = helper.make_graph([node], "graph", ports[:1], ports[1:], stored)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
        network = parse_onnx(made.SerializeToString(), "net", "net.onnx")
    else:
        data, (wanted,) = written(node, inputs, constants)
        network, shape = parse_onnx(data, "net", "net.onnx"), wanted.shape
    assert network.nodes == ()
    assert (network.tensor("y").shape, network.tensor("y").elements) == (shape, 0)


def test_parts_without_elements() -> None:
    node = helper.make_node("Split", ["x", "n"], ["a", "b", "c"], axis=1)
    data, wanted = written(node, {"x": X}, {"n": np.array([1, 0, 2])})
    network = parse_onnx(data, "net", "net.onnx")
    made = evaluate(network, {"x": X})
    for name, part in zip("abc", wanted, strict=True):
        np.testing.assert_array_equal(network.tensor(name).data if name == "b" else made[name], part)


def test_product_of_nothing() -> None:
    inputs = {"x": np.zeros((2, 0), np.float32), "w": np.zeros((0, 3), np.float32)}
    data, (wanted,) = written(helper.make_node("MatMul", [*inputs], ["y"]), inputs, {})
    np.testing.assert_array_equal(evaluate(parse_onnx(data, "net", "net.onnx"), inputs)["y"], wanted)
    assert wanted.shape == (2, 3)


def test_results_that_are_too_large_are_not_computed() -> None:
    """The addition of padding to nothing would take 32 GiB."""
    ports = [helper.make_tensor_value_info(name, 1, [size]) for name, size in (("x", 0), ("y", 1 << 33))]
    graph = helper.make_graph(
        [helper.make_node("Pad", ["x", "p"], ["y"])], "graph", ports[:1], ports[1:],
        [numpy_helper.from_array(np.array([0, 1 << 33]), "p")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    assert_onnx_refused(made.SerializeToString(), "constants-too-large", "node 0 (Pad) writing 'y'", str(1 << 35))


def test_outputs_of_nothing_may_be_absent() -> None:
    node = helper.make_node("GRU", ["x", "w", "r"], ["", "h"], hidden_size=2)
    weights = {"w": np.ones((1, 6, 3), np.float32), "r": np.ones((1, 6, 2), np.float32)}
    ports = [helper.make_tensor_value_info(name, 1, shape) for name, shape in (("x", [4, 0, 3]), ("h", [1, 0, 2]))]
    stored = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph([node], "graph", ports[:1], ports[1:], stored)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8)
    network = parse_onnx(made.SerializeToString(), "net", "net.onnx")
    assert (network.nodes, network.tensor("h").shape) == ((), (1, 0, 2))


@pytest.mark.parametrize(
    ("operator", "attributes", "shapes"),
    [
        ("BitCast", {"to": 1 << 40}, [[2, 0]]),
        ("STFT", {}, [[1, 4, 1], [0], [], []]),
        ("GatherND", {"batch_dims": -2}, [[2, 0, 3], [0, 2]]),
    ],
)
def test_shapes_that_onnx_cannot_infer(operator: str, attributes: dict[str, Any], shapes: list[list[int]]) -> None:
    ports = [helper.make_tensor_value_info(f"x{index}", 7 if index else 1, shape) for index, shape in enumerate(shapes)]
    made = helper.make_tensor_value_info("y", 1, [None, None])
    names = ["x0", "x1", "", "x3"][: len(shapes)]
    graph = helper.make_graph([helper.make_node(operator, names, ["y"], **attributes)], "graph", ports, [made])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 26)], ir_version=8).SerializeToString()
    with pytest.raises(MlfError):
        parse_onnx(data, "net", "net.onnx")
