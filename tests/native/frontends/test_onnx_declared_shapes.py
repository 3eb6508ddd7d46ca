"""Parameters that are not constant, but that the declared shape of the result determines."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from support.errors import raises
from support.onnx_models import reference

Array = npt.NDArray[Any]
X = np.random.default_rng(9).standard_normal((2, 3, 4)).astype(np.float32)


def network(operator: str, value: list[int], index: int = 1, **attributes: Any) -> tuple[bytes, dict[str, Array]]:
    """Return a network whose input ``p`` is the parameter ``value``; its output declares the shape that this gives."""
    inputs = [*["x", "", "", ""][:index], "p"]
    feeds = {"x": X, "p": np.array(value, np.int64)}
    ports = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape),
        helper.make_tensor_value_info("p", TensorProto.INT64, feeds["p"].shape),
    ]
    node = helper.make_node(operator, inputs, ["y"], **attributes)
    unknown = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    made = helper.make_model(
        helper.make_graph([node], "graph", ports, [unknown]), opset_imports=[helper.make_opsetid("", 21)], ir_version=8
    )
    (wanted,) = reference(made.SerializeToString(), feeds)
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, wanted.shape))
    return made.SerializeToString(), feeds


@pytest.mark.parametrize(
    ("operator", "value", "attributes"),
    [
        ("Reshape", [4, -1], {}), ("Reshape", [0, 12], {}), ("Expand", [5, 1, 3, 1], {}), ("Tile", [1, 2, 3], {}),
        ("Unsqueeze", [0, 2], {}), ("ReduceSum", [-1], {"keepdims": 1}), ("ReduceMax", [0, 2], {"keepdims": 0}),
        ("ReduceSum", [1], {"keepdims": 0}), ("ReduceL2", [0, 1, 2], {"keepdims": 0}),
        ("CenterCropPad", [5, 2], {"axes": [1, 2]}),
    ],
)  # fmt: skip
def test_declared_shape_determines_the_parameter(operator: str, value: list[int], attributes: dict[str, Any]) -> None:
    data, feeds = network(operator, value, **attributes)
    graph = parse_onnx(data, "net", "net.onnx")
    (wanted,) = reference(data, feeds)
    np.testing.assert_allclose(evaluate(graph, feeds)["y"], wanted, rtol=1e-5)
    assert ["'p' is not read" in note for note in graph.notes] == [True]


def test_declared_shape_determines_the_sizes_of_resize() -> None:
    data, feeds = network("Resize", [2, 6, 2], 3, mode="linear")
    np.testing.assert_allclose(
        evaluate(parse_onnx(data, "net", "net.onnx"), feeds)["y"], reference(data, feeds)[0], rtol=1e-5
    )


@pytest.mark.parametrize("aligned", [0, 1])
def test_declared_shape_determines_the_image_of_a_grid(aligned: int) -> None:
    for size in ([2, 7, 4, 5], [2, 1, 3, 4, 2]):
        matrices = X.reshape(-1)[: 2 * (len(size) - 2) * (len(size) - 1)].reshape(2, len(size) - 2, len(size) - 1)
        node = helper.make_node("AffineGrid", ["x", "p"], ["y"], align_corners=aligned)
        ports = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, matrices.shape),
            helper.make_tensor_value_info("p", TensorProto.INT64, [len(size)]),
        ]
        made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, *size[2:], len(size) - 2])
        graph = helper.make_graph([node], "graph", ports, [made])
        data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]).SerializeToString()
        feeds = {"x": matrices, "p": np.array(size, np.int64)}
        found = parse_onnx(data, "net", "net.onnx")
        assert [node.operator.name for node in found.nodes if node.operator.name != "RESHAPE"] == ["BATCH_MATMUL"]
        np.testing.assert_allclose(evaluate(found, feeds)["y"], reference(data, feeds)[0], rtol=1e-5, atol=1e-6)


def test_declared_shapes_determine_the_pieces_of_split() -> None:
    node = helper.make_node("Split", ["x", "p"], ["a", "b"], axis=-1)
    ports = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape),
        helper.make_tensor_value_info("p", TensorProto.INT64, [2]),
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3, size]) for name, size in (("a", 3), ("b", 1))
    ]
    made = helper.make_model(
        helper.make_graph([node], "graph", ports, outputs), opset_imports=[helper.make_opsetid("", 21)]
    )
    values = evaluate(parse_onnx(made.SerializeToString(), "net", "net.onnx"), {"x": X, "p": np.array([3, 1])})
    np.testing.assert_array_equal(values["a"], X[..., :3])
    np.testing.assert_array_equal(values["b"], X[..., 3:])


def test_pieces_of_different_ranks_are_refused() -> None:
    ports = [helper.make_tensor_value_info("p", TensorProto.INT64, [2])]
    ports.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4]))
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("a", [2, 3]), ("b", [2]))
    ]
    graph = helper.make_graph([helper.make_node("Split", ["x", "p"], ["a", "b"], axis=1)], "graph", ports, outputs)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8).SerializeToString()
    with raises(UnsupportedModelError, "input-not-constant"):
        parse_onnx(data, "net", "net.onnx")


@pytest.mark.parametrize(
    ("operator", "shape", "made", "attributes"),
    [
        ("ReduceSum", (3,) * 5, (3, 3, 3), {"keepdims": 0}),  # one of ten pairs
        ("ReduceL1", (1, 1), (1, 1), {"keepdims": 1}),  # both or none
        ("ReduceSum", (2, 3), (2, 3), {"keepdims": 0, "noop_with_empty_axes": 1}),
        ("Reshape", (2, 3), None, {}),
    ],
)
def test_parameters_that_leave_a_choice_are_refused(
    operator: str, shape: tuple[int, ...], made: tuple[int, ...] | None, attributes: dict[str, Any]
) -> None:
    ports = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, shape),
        helper.make_tensor_value_info("p", TensorProto.INT64, [1]),
    ]
    sizes = [None] if made is None else made
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "p"], ["y"], **attributes)], "graph", ports,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, sizes)],
    )  # fmt: skip
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8).SerializeToString()
    with raises(UnsupportedModelError, "input-not-constant"):
        parse_onnx(data, "net", "net.onnx")


@pytest.mark.parametrize(
    ("operator", "inputs", "made"),
    [
        ("Col2Im", [[1, 720720, 1], None, None], [1, 1, *[2] * 8]),  # billions of windows
        ("STFT", [[1, 1 << 28], None, [5]], [1, 3, 3, 2]),  # millions of steps
    ],
)
def test_values_of_large_tensors_are_not_tried(operator: str, inputs: list[list[int] | None], made: list[int]) -> None:
    ports = [
        helper.make_tensor_value_info(name, TensorProto.INT64, [len(made) - 2] if operator == "Col2Im" else [])
        if shape is None
        else helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in zip("abc", inputs, strict=False)
    ]
    graph = helper.make_graph(
        [helper.make_node(operator, list("abc"), ["y"])], "graph", ports,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, made)],
    )  # fmt: skip
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8).SerializeToString()
    with raises(UnsupportedModelError, "input-not-constant"):
        parse_onnx(data, "net", "net.onnx")


def test_tensor_without_elements_has_no_number_of_repeats() -> None:
    graph = helper.make_graph(
        [helper.make_node("Tile", ["x", "p"], ["y"])], "graph",
        [helper.make_tensor_value_info("p", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor("x", TensorProto.FLOAT, [0, 3], [])],
    )  # fmt: skip
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8).SerializeToString()
    with pytest.raises(UnsupportedModelError) as raised:
        parse_onnx(data, "net", "net.onnx")
    assert raised.value.code in {"input-not-constant", "tensor-empty"}


def test_contradicting_shapes_are_refused() -> None:
    data, _ = network("Reshape", [4, 6])
    made = onnx.load_from_string(data)
    made.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 5
    with pytest.raises(Exception) as raised:  # noqa: PT011 - asserted below
        parse_onnx(made.SerializeToString(), "net", "net.onnx")
    assert raised.type.__name__ == "InputFileError"
