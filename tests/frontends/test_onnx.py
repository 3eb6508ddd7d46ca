"""ONNX networks: numbers equal ONNX's own evaluator, names and shapes stay, every mistake has its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.errors import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.frontends.onnx import parse_onnx
from mlfbuild.graph.evaluate import evaluate
from mlfbuild.graph.ops import Transpose
from support.host_c import run_on_host
from support.native import compile_network
from support.onnx_models import model, reference

Floats = npt.NDArray[np.float32]
RANDOM = np.random.default_rng(5)
START = RANDOM.bit_generator.state


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Each test draws the same numbers, whichever tests run."""
    RANDOM.bit_generator.state = START


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


def test_one_tensor_under_two_orders() -> None:
    """A transpose moves nothing by itself; what reads both must still get both."""
    data = model(
        [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Add", ["x", "t"], ["y"]),
         helper.make_node("Flatten", ["x"], ["f"]), helper.make_node("Flatten", ["t"], ["g"])],
        [("x", (3, 3))],
        [("y", (3, 3)), ("f", (3, 3)), ("g", (3, 3))],
    )  # fmt: skip
    assert_equal(data, floats(3, 3))


Case = tuple[list[onnx.NodeProto], dict[str, npt.NDArray[Any]], tuple[int, ...]]


@st.composite
def slices(draw: st.DrawFn) -> Case:
    shape = (2, 3, 4, 5)
    axes = draw(st.permutations([0, 1, 2, 3]))[: draw(st.integers(1, 4))]
    steps = [draw(st.sampled_from([1, 2, -1, -2])) for _ in axes]
    bounds = [draw(st.sampled_from([(0, shape[a]), (1, 1 << 62), (-shape[a], -1)])) for a in axes]
    ends = [
        (low, high) if step > 0 else (high - 1, -(1 << 62)) for (low, high), step in zip(bounds, steps, strict=True)
    ]
    constants = {
        "starts": np.array([low for low, _ in ends]), "ends": np.array([high for _, high in ends]),
        "axes": np.array([a if draw(st.booleans()) else a - 4 for a in axes]), "steps": np.array(steps),
    }  # fmt: skip
    return [helper.make_node("Slice", ["p", "starts", "ends", "axes", "steps"], ["y"])], constants, shape


@st.composite
def pads(draw: st.DrawFn) -> Case:
    mode = draw(st.sampled_from(["constant", "reflect", "edge", "wrap"]))
    amounts = [draw(st.integers(0, 2)) for _ in range(8)]
    constants: dict[str, npt.NDArray[Any]] = {"pads": np.array(amounts)}
    names = ["p", "pads"]
    if mode == "constant" and draw(st.booleans()):
        constants["fill"] = np.float32(draw(st.sampled_from([0.0, -3.5])))
        names.append("fill")
    return [helper.make_node("Pad", names, ["y"], mode=mode)], constants, (3, 4, 3, 5)


@st.composite
def gathers(draw: st.DrawFn) -> Case:
    """Indices of any rank, positive and negative, known or computed."""
    shape, axis = (2, 3, 4, 5), draw(st.integers(-4, 3))
    size = shape[axis]
    rank = draw(st.integers(0, 2))
    wanted = RANDOM.integers(-size, size, (2, 3)[:rank])
    made = [helper.make_node("Gather", ["p", "i"], ["y"], axis=axis)]
    if draw(st.booleans()):
        return made, {"i": np.asarray(wanted)}, shape
    zeros = helper.make_node("Mul", ["x", "nothing"], ["zeros"])
    first = helper.make_node("ReduceMax", ["zeros"], ["first"], keepdims=0)
    added = helper.make_node("Add", ["first", "wanted"], ["sum"])
    cast = helper.make_node("Cast", ["sum"], ["i"], to=TensorProto.INT64)
    constants = {"nothing": np.float32(0), "wanted": np.asarray(wanted).astype(np.float32)}
    return [zeros, first, added, cast, *made], constants, shape


@st.composite
def resizes(draw: st.DrawFn) -> Case:
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    way = draw(
        st.sampled_from(["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric"])
    )
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": way}
    if mode == "nearest":
        attributes["nearest_mode"] = draw(st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    if mode == "cubic":
        attributes["exclude_outside"] = draw(st.integers(0, 1))
    shape = (1, 2, 4, 5)
    if draw(st.booleans()):
        names, constants = ["p", "", "s"], {"s": np.array([1, 1, draw(_SCALES), draw(_SCALES)], np.float32)}
    else:
        names, constants = ["p", "", "", "s"], {"s": np.array([1, 2, draw(st.integers(2, 9)), draw(st.integers(2, 9))])}
    return [helper.make_node("Resize", names, ["y"], **attributes)], constants, shape


_SCALES = st.sampled_from([0.5, 0.75, 1.0, 1.5, 2.0, 3.0])


@st.composite
def transposed_convolutions(draw: st.DrawFn) -> Case:
    groups, inside, outside = draw(st.sampled_from([(1, 2, 3), (1, 1, 1), (1, 3, 2)]))
    kernel = [draw(st.integers(1, 3)) for _ in range(2)]
    strides = [draw(st.integers(1, 3)) for _ in range(2)]
    attributes: dict[str, Any] = {"group": groups, "strides": strides}
    attributes["dilations"] = [draw(st.integers(1, 2)) for _ in range(2)]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, attributes["dilations"], strict=True)]
    attributes["pads"] = [draw(st.integers(0, r - 1)) for r in reach * 2]
    attributes["output_padding"] = [draw(st.integers(0, s - 1)) for s in strides]
    constants = {"w": floats(groups * inside, outside, *kernel)}
    names = ["p", "w"]
    if draw(st.booleans()):
        constants["b"] = floats(groups * outside)
        names.append("b")
    return [helper.make_node("ConvTranspose", names, ["y"], **attributes)], constants, (1, groups * inside, 4, 5)


def test_transposed_convolution_in_groups() -> None:
    """Each group is one of its own; ONNX's evaluator does not take them."""
    x, w = floats(1, 4, 3, 3), floats(4, 3, 2, 2)
    node = helper.make_node
    grouped = model(
        [node("ConvTranspose", ["x", "w"], ["y"], group=2)], [("x", x.shape)], [("y", [None] * 4)], {"w": w}
    )
    made = evaluate(parse_onnx(grouped, "net", "net.onnx"), {"x": x})["y"]
    one = model(
        [node("ConvTranspose", ["x", "w"], ["y"])], [("x", (1, 2, 3, 3)), ("w", (2, 3, 2, 2))], [("y", [None] * 4)]
    )
    parts = [reference(one, {"x": x[:, rows], "w": w[rows]})[0] for rows in (slice(0, 2), slice(2, 4))]
    np.testing.assert_allclose(made, np.concatenate(parts, axis=1), rtol=1e-5, atol=1e-5)


def test_negative_padding_cuts_off() -> None:
    x = floats(2, 5)
    data = model([helper.make_node("Pad", ["x", "pads"], ["y"])], [("x", (2, 5))], [("y", (2, 4))],
                 {"pads": np.array([0, -2, 0, 1])})  # fmt: skip
    made = evaluate(parse_onnx(data, "net", "net.onnx"), {"x": x})["y"]
    np.testing.assert_array_equal(made, np.pad(x[:, 2:], ((0, 0), (0, 1))))


@st.composite
def reductions(draw: st.DrawFn) -> Case:
    operator = draw(st.sampled_from(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                                     "ReduceLogSumExp", "ReduceSumSquare"]))  # fmt: skip
    axes = draw(st.lists(st.integers(-4, -1), unique=True, max_size=4))
    names, constants = (["p", "axes"], {"axes": np.array(axes)}) if axes else (["p"], {})
    return [helper.make_node(operator, names, ["y"], keepdims=draw(st.integers(0, 1)))], constants, (2, 3, 4, 5)


@st.composite
def others(draw: st.DrawFn) -> Case:
    """Comparisons, choices and normalisations, on dimensions that are stored in another order."""
    node, shape = helper.make_node, (2, 4, 2, 6)
    scale = {"s": floats(4), "b": floats(4), "row": floats(6), "flags": RANDOM.integers(0, 2, (4, 1, 6)).astype(bool)}
    return draw(st.sampled_from([
        [node("Where", ["flags", "p", "row"], ["y"])],
        [node("Greater", ["p", "row"], ["g"]), node("Where", ["g", "p", "row"], ["y"])],
        [node("Less", ["p", "row"], ["l"]), node("Not", ["l"], ["n"]), node("And", ["n", "flags"], ["a"]),
         node("Cast", ["a"], ["y"], to=TensorProto.FLOAT)],
        [node("Cast", ["p"], ["i"], to=draw(st.sampled_from([TensorProto.INT8, TensorProto.INT32, TensorProto.INT64]))),
         node("CastLike", ["i", "p"], ["y"])],
        [node("LogSoftmax", ["p"], ["y"], axis=draw(st.integers(0, 3)))],
        [node("Softmax", ["p"], ["y"], axis=draw(st.integers(0, 3)))],
        [node("InstanceNormalization", ["p", "s", "b"], ["y"])],
        [node("LayerNormalization", ["p", "row", "row"], ["y"])],
        [node("GroupNormalization", ["p", "s", "b"], ["y"], num_groups=2)],
        [node("DepthToSpace", ["p"], ["y"], blocksize=2, mode=draw(st.sampled_from(["DCR", "CRD"])))],
        [node("SpaceToDepth", ["p"], ["y"], blocksize=2)],
        [node("MatMul", ["p", "q"], ["y"])],
        [node("MaxPool", ["p"], ["y"], kernel_shape=[2, 2], dilations=[1, 2], pads=[1, 0, 0, 1])],
        [node("Clip", ["p", "", "s0"], ["y"]), node("Constant", [], ["s0"], value_float=0.25)][::-1],
    ])), scale, shape  # fmt: skip


@pytest.mark.parametrize(
    "family", [slices(), pads(), gathers(), resizes(), transposed_convolutions(), reductions(), others()],
    ids=["slices", "pads", "gathers", "resizes", "transposed convolutions", "reductions", "others"],
)  # fmt: skip
@settings(max_examples=50, deadline=None, derandomize=True)
@given(data=st.data())
def test_on_images(family: st.SearchStrategy[Case], data: st.DataObject) -> None:
    """A pool leaves its output with the channels last, as convolutions do; what follows must count as ONNX does."""
    nodes, constants, shape = data.draw(family)
    front = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[1, 1]),
        helper.make_node("Transpose", ["p"], ["q"], perm=[0, 1, 3, 2]),
    ]
    graph = helper.make_graph(
        [*front, *nodes], "graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ())],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8)
    assert_equal(made.SerializeToString(), floats(*shape), compiled=False)
