"""ONNX operators with random attributes and shapes, against ONNX's evaluator."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from onnx import TensorProto, helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from support.examples import examples
from support.onnx_checks import RANDOM, Floats, assert_equal, floats, on_images
from support.onnx_models import model, reference

pytestmark = pytest.mark.usefixtures("same_numbers")


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[bytes, Floats]:
    """Draw a Conv of one to three dimensions with all attributes."""
    dimensions = draw(st.integers(1, 3))
    size = [draw(st.integers(1, 9 if dimensions < 3 else 5)) for _ in range(dimensions)]
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


@settings(max_examples=examples(120), deadline=None, derandomize=True)
@given(convolutions())
def test_convolutions(case: tuple[bytes, Floats]) -> None:
    assert_equal(case[0], case[1], compiled=False)


def test_convolution_and_pool_of_volumes() -> None:
    """A grouped convolution, a pool and a mean of volumes, also as C."""
    node = helper.make_node
    made = model(
        [
            node(
                "Conv", ["x", "w", "b"], ["c"], group=2, pads=[1, 0, 1, 1, 0, 1], strides=[1, 2, 1], dilations=[2, 1, 1]
            ),
            node("MaxPool", ["c"], ["m"], kernel_shape=[2, 2, 2], strides=[2, 1, 1]),
            node("Conv", ["m", "v"], ["d"], strides=[1, 1, 2]),
            node("GlobalAveragePool", ["d"], ["y"]),
        ],
        [("x", (2, 4, 6, 7, 5))],
        [("y", [None] * 5), ("c", [None] * 5)],
        {"w": floats(6, 2, 2, 3, 3), "b": floats(6), "v": floats(3, 6, 1, 1, 1)},
    )
    assert_equal(made, floats(2, 4, 6, 7, 5))


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(st.data())
def test_broadcasting_of_images(data: st.DataObject) -> None:
    """The output of a pool has its channels last; constants must be broadcast to the right dimensions."""
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
    """Draw indices of any rank, positive and negative, constant or computed."""
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
    """Each group is a separate convolution; ONNX's evaluator does not support groups."""
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


def test_negative_padding_crops() -> None:
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
    """Draw comparisons, selections and normalisations on dimensions that are stored in another order."""
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
@settings(max_examples=examples(50), deadline=None, derandomize=True)
@given(data=st.data())
def test_operators_on_images(family: st.SearchStrategy[Case], data: st.DataObject) -> None:
    """The output of a pool has its channels last; the next operator must use ONNX's dimensions."""
    nodes, constants, shape = data.draw(family)
    assert_equal(on_images(nodes, constants, shape), floats(*shape), compiled=False)
