"""ONNX networks: numbers equal ONNX's own evaluator, names and shapes stay, every mistake has its line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from mlfbuild.errors import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.frontends.onnx import parse_onnx
from mlfbuild.graph.evaluate import evaluate
from mlfbuild.graph.ops import Transpose
from support.host_c import run_on_host
from support.native import compile_network
from support.onnx_models import model, reference

Floats = npt.NDArray[np.float32]
RANDOM = np.random.default_rng(5)


def floats(*shape: int) -> Floats:
    return RANDOM.standard_normal(shape).astype(np.float32)


def assert_equal(data: bytes, *inputs: Floats, compiled: bool = True) -> None:
    """The graph in numpy, and perhaps as C, computes what ONNX's evaluator does."""
    graph = parse_onnx(data, "net", "net.onnx")
    feeds = dict(zip(graph.inputs, inputs, strict=True))
    wanted = reference(data, feeds)
    values = evaluate(graph, feeds)
    made = [[values[name] for name in graph.outputs]]
    if compiled:
        outputs = run_on_host(compile_network(graph), inputs)
        made.append([value.reshape(other.shape) for value, other in zip(outputs, wanted, strict=True)])
    for results in made:
        for result, expected in zip(results, wanted, strict=True):
            assert result.shape == expected.shape
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def small_network() -> bytes:
    """Convolution, normalisation, pool, a branch that is added, and a dense layer."""
    node = helper.make_node
    return model(
        [
            node("Conv", ["x", "w1", "b1"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("BatchNormalization", ["c1", "scale", "offset", "mean", "variance"], ["n1"]),
            node("MaxPool", ["n1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
            node("Conv", ["p1", "w2"], ["c2"], kernel_shape=[3, 3], auto_pad="SAME_UPPER", group=4),
            node("Add", ["c2", "p1"], ["a1"]),
            node("GlobalAveragePool", ["a1"], ["g1"]),
            node("Flatten", ["g1"], ["f1"]),
            node("Gemm", ["f1", "w3", "b3"], ["d1"], transB=1),
            node("Softmax", ["d1"], ["y"]),
        ],
        [("x", (1, 3, 8, 6))],
        [("y", (1, 5)), ("p1", (1, 4, 4, 3))],
        {
            "w1": floats(4, 3, 3, 3),
            "b1": floats(4),
            "scale": floats(4),
            "offset": floats(4),
            "mean": floats(4),
            "variance": np.abs(floats(4)) + 1,
            "w2": floats(4, 1, 3, 3),
            "w3": floats(5, 4),
            "b3": floats(5),
        },
    )


def test_a_small_network() -> None:
    assert_equal(small_network(), floats(1, 3, 8, 6))


def test_names_and_shapes_of_inputs_and_outputs_stay() -> None:
    graph = parse_onnx(small_network(), "net", "net.onnx")
    assert [(name, graph.tensor(name).shape) for name in graph.inputs] == [("x", (1, 3, 8, 6))]
    assert [(name, graph.tensor(name).shape) for name in graph.outputs] == [("y", (1, 5)), ("p1", (1, 4, 4, 3))]


def test_only_what_comes_in_and_goes_out_is_transposed() -> None:
    graph = parse_onnx(small_network(), "net", "net.onnx")
    moved = [(node.inputs, node.outputs) for node in graph.nodes if isinstance(node.operator, Transpose)]
    assert [inputs for inputs, _ in moved[:1]] == [("x",)]
    assert [outputs for _, outputs in moved[1:]] == [("p1",)]


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[bytes, Floats]:
    """A Conv of one or two dimensions, every attribute drawn."""
    dimensions = draw(st.integers(1, 2))
    size = [draw(st.integers(1, 9)) for _ in range(dimensions)]
    kernel = [draw(st.integers(1, 4)) for _ in range(dimensions)]
    dilations = [draw(st.integers(1, 2)) for _ in range(dimensions)]
    attributes: dict[str, object] = {
        "kernel_shape": kernel,
        "dilations": dilations,
        "strides": [draw(st.integers(1, 3)) for _ in range(dimensions)],
    }
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    padding = draw(st.sampled_from(["pads", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if padding == "pads":
        pads = [draw(st.integers(0, 3)) for _ in range(2 * dimensions)]
        attributes["pads"] = pads
        padded = [s + pads[i] + pads[i + dimensions] for i, s in enumerate(size)]
    else:
        attributes["auto_pad"] = padding
        padded = size
    if padding in {"pads", "VALID"}:
        size = [max(s, s + r - p) for s, r, p in zip(size, reach, padded, strict=True)]
    channels, groups = draw(st.sampled_from([(1, 1), (2, 1), (3, 3), (2, 2)]))
    outputs = groups * draw(st.integers(1, 3))
    constants = {"w": floats(outputs, channels // groups, *kernel)}
    names = ["x", "w"]
    if draw(st.booleans()):
        constants["b"] = floats(outputs)
        names.append("b")
    made = helper.make_node("Conv", names, ["y"], group=groups, **attributes)
    return model([made], [("x", (1, channels, *size))], [("y", [None] * (2 + dimensions))], constants), floats(
        1, channels, *size
    )


@settings(max_examples=120, deadline=None, derandomize=True)
@given(convolutions())
def test_convolutions(case: tuple[bytes, Floats]) -> None:
    assert_equal(case[0], case[1], compiled=False)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_broadcasting_of_images(data: st.DataObject) -> None:
    """A pool leaves its output with the channels last; any constant must still meet the right dimensions."""
    shape = (1, 3, 4, 2)
    rank = data.draw(st.integers(0, 4))
    other = tuple(size if data.draw(st.booleans()) else 1 for size in shape[4 - rank :])
    operator = data.draw(st.sampled_from(["Add", "Sub", "Mul", "Max"]))
    operands = ["p", "c"] if data.draw(st.booleans()) else ["c", "p"]
    made = model(
        [helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[1, 1]), helper.make_node(operator, operands, ["y"])],
        [("x", shape)],
        [("y", shape)],
        {"c": floats(*other)},
    )
    assert_equal(made, floats(*shape), compiled=False)


def test_shapes_that_are_computed_in_the_graph() -> None:
    """What PyTorch exports for ``x.view(x.size(0), -1)``."""
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
    """Pad's attributes became inputs on the way."""
    node = helper.make_node
    pads = [0, 0, 1, 0, 0, 0, 0, 2]
    constants = {"pads": np.array(pads)} if opset >= 11 else {}
    pad = node("Pad", ["x", "pads"], ["p"]) if opset >= 11 else node("Pad", ["x"], ["p"], pads=pads)
    data = model(
        [pad, node("Softmax", ["p"], ["y"], axis=3)], [("x", (1, 2, 3, 4))], [("y", (1, 2, 4, 6))], constants, opset
    )
    assert_equal(data, floats(1, 2, 3, 4), compiled=False)


def test_softmax_of_everything_behind_an_axis() -> None:
    """What version 11 means by its axis; ONNX's evaluator knows only the meaning of version 13."""
    data = model([helper.make_node("Softmax", ["x"], ["y"])], [("x", (2, 3, 4))], [("y", (2, 3, 4))], opset=11)
    x = floats(2, 3, 4)
    exponentials = np.exp(x)
    wanted = exponentials / exponentials.sum(axis=(1, 2), keepdims=True)
    made = evaluate(parse_onnx(data, "net", "net.onnx"), {"x": x})["y"]
    np.testing.assert_allclose(made, wanted, rtol=1e-5)


def broken(change: Callable[[onnx.ModelProto], object]) -> bytes:
    made = onnx.load_from_string(small_network())
    change(made)
    return bytes(made.SerializeToString())


def external(made: onnx.ModelProto) -> None:
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def control_flow() -> bytes:
    body = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "body", [],
                             [helper.make_tensor_value_info("z", TensorProto.FLOAT, (1,))])  # fmt: skip
    made = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    return model([made], [("x", (1,))], [("y", (1,))], {"c": np.array(True)})


def free_size(made: onnx.ModelProto) -> None:
    made.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"


CASES: dict[str, tuple[bytes, type[MlfError], str]] = {
    "cut": (small_network()[:-9], InputFileError, "not a valid ONNX model: the file: cannot be decoded"),
    "text": (b"hello", InputFileError, "not a valid ONNX model"),
    "empty": (b"", InputFileError, "not a valid ONNX model: the file: holds no graph"),
    "old": (
        broken(lambda made: setattr(made.opset_import[0], "version", 6)),
        UnsupportedModelError,
        "uses version 6 of ONNX's operators; supported are 7 and later",
    ),
    "new": (
        broken(lambda made: setattr(made.opset_import[0], "version", 999)),
        UnsupportedModelError,
        "uses version 999 of ONNX's operators, the installed onnx",
    ),
    "external": (broken(external), UnsupportedModelError, "keeps the weights 'w1' in another file"),
    "free": (broken(free_size), UnsupportedModelError, "input 'x' has the dynamic shape [1, 3, ?, 6]"),
    "integers": (
        model([helper.make_node("Add", ["x", "x"], ["y"])], [("x", (1,))], [("y", (1,))], element=TensorProto.INT64),
        UnsupportedModelError,
        "node 0 (Add) writing 'y': 'x' int64[1]: the type must be int8, int16 or float32",
    ),
    "no type": (
        broken(lambda made: setattr(made.graph.input[0].type.tensor_type, "elem_type", 90)),
        UnsupportedModelError,
        "input 'x' has type 90; supported are FLOAT, INT8, UINT8, INT16, INT32, INT64, BOOL",
    ),
    "control flow": (control_flow(), UnsupportedModelError, "node 0 (If) writing 'y'"),
    "custom": (
        broken(lambda made: setattr(made.graph.node[0], "domain", "com.acme")),
        InputFileError,
        "No opset import for domain 'com.acme'",
    ),
    "unknown": (
        model([helper.make_node("Einsum", ["x"], ["y"], equation="ij->ji")], [("x", (2, 3))], [("y", (3, 2))]),
        UnsupportedModelError,
        "node 0 (Einsum) writing 'y': not supported; supported are Abs, Add, And, ArgMax",
    ),
    "cycle": (
        broken(lambda made: made.graph.node[0].input.__setitem__(0, "p1")), InputFileError, "not a valid ONNX model",
    ),
    "groups": (
        model(
            [helper.make_node("Conv", ["x", "w"], ["y"], group=3)],
            [("x", (1, 4, 3, 3))], [("y", [None] * 4)], {"w": floats(4, 1, 1, 1)},
        ),
        InputFileError,
        "3 groups of 1 channels do not fit",
    ),
    "weights": (
        model(
            [helper.make_node("Conv", ["x", "w"], ["y"])],
            [("x", (1, 4, 3, 3)), ("w", (2, 4, 1, 1))], [("y", [None] * 4)],
        ),
        UnsupportedModelError,
        "node 0 (Conv) writing 'y': the filter 'w' must be constant",
    ),
    "bomb": (
        model(
            [helper.make_node("ConstantOfShape", ["s"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])],
            [("x", (1,))], [("y", [None] * 2)], {"s": np.array([1 << 20, 1 << 20])},
        ),
        UnsupportedModelError,
        "makes a constant of more than",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_mistakes(name: str) -> None:
    data, kind, words = CASES[name]
    with pytest.raises(kind) as caught:
        parse_onnx(data, "net", "net.onnx")
    assert words in str(caught.value)
    assert str(caught.value).startswith("net.onnx: ")
    assert "\n" not in str(caught.value)


SMALL = small_network()


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.integers(0, len(SMALL) - 1), st.integers(0, 255))
def test_a_damaged_byte_never_makes_a_traceback(position: int, value: int) -> None:
    data = bytearray(SMALL)
    data[position] = value
    try:
        parse_onnx(bytes(data), "net", "net.onnx")
    except (InputFileError, UnsupportedModelError) as error:
        lines = str(error).count("\n")
    else:
        lines = 0
    assert lines == 0
