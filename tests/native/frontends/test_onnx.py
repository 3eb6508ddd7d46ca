"""ONNX networks keep the names, shapes and layout of the file, in every version."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from mlfbuild.native.frontends.onnx import operators, parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.native.graph.ops import Transpose
from support.onnx_checks import assert_equal, floats, small_network
from support.onnx_models import model

pytestmark = pytest.mark.usefixtures("same_numbers")


def test_a_small_network() -> None:
    assert_equal(small_network(), floats(1, 3, 8, 6))


def test_names_and_shapes_of_inputs_and_outputs_are_kept() -> None:
    graph = parse_onnx(small_network(), "net", "net.onnx")
    assert [(name, graph.tensor(name).shape) for name in graph.inputs] == [("x", (1, 3, 8, 6))]
    assert [(name, graph.tensor(name).shape) for name in graph.outputs] == [("y", (1, 5)), ("p1", (1, 4, 4, 3))]


def test_only_inputs_and_outputs_are_transposed() -> None:
    graph = parse_onnx(small_network(), "net", "net.onnx")
    moved = [(node.inputs, node.outputs) for node in graph.nodes if isinstance(node.operator, Transpose)]
    assert [inputs for inputs, _ in moved[:1]] == [("x",)]
    assert [outputs for _, outputs in moved[1:]] == [("p1",)]


def test_tensor_read_in_two_orders() -> None:
    """A transpose does not move data, but readers of both tensors must get the right order."""
    data = model(
        [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Add", ["x", "t"], ["y"]),
         helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("Flatten", ["t"], ["g"])],
        [("x", (3, 3))],
        [("y", (3, 3)), ("f", (3, 3)), ("g", (3, 3))],
    )  # fmt: skip
    assert_equal(data, floats(3, 3))


@pytest.mark.parametrize("outputs", [["y", "x"], ["y", "y"], ["x"]], ids=" ".join)
def test_input_or_output_used_twice(outputs: list[str]) -> None:
    data = model([helper.make_node("Relu", ["x"], ["y"])], [("x", (1, 4))], [(name, (1, 4)) for name in outputs])
    graph = parse_onnx(data, "net", "net.onnx")
    assert graph.outputs == tuple(outputs)
    values = evaluate(graph, {"x": np.array([[-1, 2, -3, 4]], np.float32)})
    assert values["x"].tolist() == [[-1, 2, -3, 4]]
    assert "y" not in outputs or values["y"].tolist() == [[0, 2, 0, 4]]


def test_computed_shapes_are_folded() -> None:
    """PyTorch exports this for ``x.view(x.size(0), -1)``."""
    node = helper.make_node
    data = model(
        [
            node("Shape", ["x"], ["s"]),
            node("Gather", ["s", "zero"], ["n"], axis=0),
            node("Unsqueeze", ["n", "first"], ["n1"]),
            node("Concat", ["n1", "rest"], ["shape"], axis=0),
            node("Reshape", ["x", "shape"], ["y"]),
        ],
        [("x", ("batch", 2, 3))],
        [("y", (1, 6))],
        {"zero": np.int64(0), "first": np.array([0]), "rest": np.array([-1])},
    )
    assert_equal(data, floats(1, 2, 3))


def test_the_same_tensor_as_two_outputs_and_an_input_as_output() -> None:
    node = helper.make_node
    data = model(
        [node("Add", ["x", "x"], ["y"]), node("Identity", ["y"], ["z"]), node("Identity", ["x"], ["same"])],
        [("x", (1, 2, 3, 4))],
        [("z", (1, 2, 3, 4)), ("y", (1, 2, 3, 4)), ("same", (1, 2, 3, 4))],
    )
    assert_equal(data, floats(1, 2, 3, 4))
    assert parse_onnx(data, "net", "net.onnx").outputs == ("z", "y", "same")


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 12, 13, 18, 21])
def test_every_version_of_the_operators(opset: int) -> None:
    """Between these versions, Pad's attributes became inputs."""
    node = helper.make_node
    pads = [0, 0, 1, 0, 0, 0, 0, 2]
    constants = {"pads": np.array(pads)} if opset >= 11 else {}
    pad = node("Pad", ["x", "pads"], ["p"]) if opset >= 11 else node("Pad", ["x"], ["p"], pads=pads)
    data = model(
        [pad, node("Softmax", ["p"], ["y"], axis=3)], [("x", (1, 2, 3, 4))], [("y", (1, 2, 4, 6))], constants, opset
    )
    assert_equal(data, floats(1, 2, 3, 4), compiled=False)


def test_softmax_of_all_dimensions_from_an_axis() -> None:
    """This is the meaning of the axis in version 11; ONNX's evaluator implements only that of version 13."""
    data = model([helper.make_node("Softmax", ["x"], ["y"])], [("x", (2, 3, 4))], [("y", (2, 3, 4))], opset=11)
    x = floats(2, 3, 4)
    exponentials = np.exp(x)
    wanted = exponentials / exponentials.sum(axis=(1, 2), keepdims=True)
    made = evaluate(parse_onnx(data, "net", "net.onnx"), {"x": x})["y"]
    np.testing.assert_allclose(made, wanted, rtol=1e-5)


def test_modules_of_operators_import_what_they_share_from_conversion_and_not_from_one_another() -> None:
    for path in Path(operators.__file__).parent.glob("*.py"):
        assert path.stem == "__init__" or f"{operators.__name__}." not in path.read_text(), path.name
