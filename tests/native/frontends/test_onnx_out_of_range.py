"""Nodes of ONNX files with axes, sizes and indices out of range: one line with the node and the reason."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import helper

from mlfbuild.core.errors import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.native.frontends.onnx import parse_onnx
from support.onnx_models import integers, model
from support.refusals import Refusal, assert_refused

Array = npt.NDArray[Any]
SHAPE = (1, 4, 6, 6)
HUGE = 1 << 40
FILTER = {"w": np.ones((4, 4, 2, 2), np.float32)}
BITS = {"d": np.array(3), "v": np.array([0, 1], np.float32)}


def refused(
    operator: str, constants: Mapping[str, Array], attributes: Mapping[str, Any], outputs: Sequence[str]
) -> MlfError:
    """Return the error for a node that reads ``x`` and ``constants``."""
    node = helper.make_node(operator, ["x", *constants], list(outputs), **attributes)
    data = model([node], [("x", SHAPE)], [(name, [None] * 4) for name in outputs], constants)
    with pytest.raises((InputFileError, UnsupportedModelError)) as caught:
        parse_onnx(data, "net", "net.onnx")
    return caught.value


AXES: dict[str, tuple[dict[str, Array], dict[str, Any]]] = {
    "ArgMax": ({}, {}),
    "Compress": ({"c": np.array([True])}, {}),
    "Concat": ({}, {}),
    "Flatten": ({}, {}),
    "Gather": ({"i": np.array(0)}, {}),
    "GatherElements": ({"i": np.zeros(SHAPE, np.int64)}, {}),
    "Hardmax": ({}, {}),
    "LayerNormalization": ({"s": np.ones(6, np.float32)}, {}),
    "LogSoftmax": ({}, {}),
    "LpNormalization": ({}, {}),
    "OneHot": (BITS, {}),
    "ScatterElements": ({"i": np.zeros((1, 1, 1, 1), np.int64), "u": np.zeros((1, 1, 1, 1), np.float32)}, {}),
    "Softmax": ({}, {}),
    "Split": ({}, {"num_outputs": 1}),
}


@pytest.mark.parametrize("axis", [9, -9, HUGE])
@pytest.mark.parametrize("operator", AXES)
def test_axis_out_of_range(operator: str, axis: int) -> None:
    constants, attributes = AXES[operator]
    rank = 5 if operator == "OneHot" else 4
    found = refused(operator, constants, {**attributes, "axis": axis}, ["y"])
    assert_refused(found, "onnx-malformed", f"node 0 ({operator}) writing 'y'", f"{axis} of {rank}")


@pytest.mark.parametrize("operator", ["CumSum", "ReduceSum", "ReduceProd", "ReduceL2", "Squeeze", "Unsqueeze"])
def test_input_axes_out_of_range(operator: str) -> None:
    rank = 5 if operator == "Unsqueeze" else 4
    found = refused(operator, {"a": integers(9)}, {}, ["y"])
    assert_refused(found, "onnx-malformed", f"node 0 ({operator}) writing 'y'", f"9 of {rank}")


Case = tuple[str, dict[str, Array], dict[str, Any], Refusal]

NODE = "node 0 ({}) writing 'y'"

SIZES: dict[str, Case] = {
    "axes twice": ("ReduceSum", {"a": integers(1, 1)}, {}, ("onnx-malformed", NODE, "[1, 1]")),
    "perm": ("Transpose", {}, {"perm": [0, 0, 1, 2]}, ("onnx-malformed", NODE, "[0, 0, 1, 2]", "4")),
    "gather": ("Gather", {"i": np.array(77)}, {}, ("onnx-malformed", NODE, "dimension 0")),
    "gather by floats": ("GatherND", {"i": np.array([[0.5]], np.float32)}, {}, ("onnx-malformed", NODE, "32", "64")),
    "gather too deep": ("GatherND", {"i": np.zeros((1, 9), np.int64)}, {}, ("onnx-malformed", NODE, "[1, 9]")),
    "gather batches": (
        "GatherND", {"i": np.zeros((1, 1), np.int64)}, {"batch_dims": 7}, ("onnx-malformed", NODE, "[1, 1]"),
    ),
    "gather rank": ("GatherElements", {"i": np.zeros(1, np.int64)}, {}, ("onnx-malformed", NODE, "[1]")),
    "scatter": (
        "ScatterND", {"i": np.array([[9]]), "u": np.ones(SHAPE, np.float32)}, {}, ("onnx-malformed", NODE, "indices"),
    ),
    "scatter updates": (
        "ScatterND", {"i": np.array([[0]]), "u": np.ones(3, np.float32)}, {}, ("onnx-malformed", NODE, "'u'"),
    ),
    "compress nothing": ("Compress", {"c": np.array([False])}, {}, ("tensor-empty", NODE)),
    "compress too much": ("Compress", {"c": np.array([True] * 9)}, {"axis": 1}, ("onnx-malformed", NODE, "8", "4")),
    "sequences": ("ReverseSequence", {"l": integers(9, 9, 9, 9)}, {}, ("onnx-malformed", NODE, "1")),
    "reshape": ("Reshape", {"s": integers(HUGE, HUGE)}, {}, ("onnx-malformed", NODE, "1099511627776")),
    "reshape twice": ("Reshape", {"s": integers(-1, -1)}, {}, ("onnx-malformed", NODE, "[-1, -1]")),
    "reshape copies": ("Reshape", {"s": integers(0, 0, 0, 0, 0)}, {}, ("onnx-malformed", NODE, "copies")),
    "tile": ("Tile", {"r": integers(1, 1, HUGE, 1)}, {}, ("model-too-large", "tensor 'y'", "2")),
    "tile less": ("Tile", {"r": integers(1, 1, -1, 1)}, {}, ("onnx-malformed", NODE, "[1, 1, -1, 1]")),
    "expand": ("Expand", {"s": integers(HUGE, 4, 6, 6)}, {}, ("model-too-large", "tensor 'y'", "2")),
    "expand less": ("Expand", {"s": integers(-2, 4, 6, 6)}, {}, ("onnx-malformed", NODE, "[-2, 4, 6, 6]")),
    "pad": (
        "Pad", {"p": integers(0, 0, 0, 0, HUGE, 0, 0, 0)}, {"mode": "edge"}, ("model-too-large", "tensor 'y'", "2"),
    ),
    "pad mode": (
        "Pad", {"p": integers(0, 0, 0, 0, 1, 0, 0, 0)}, {"mode": "hello"}, ("onnx-malformed", NODE, "'hello'"),
    ),
    "crop": ("CenterCropPad", {"s": integers(1, 4, -1, 6)}, {}, ("onnx-malformed", NODE, "[1, 4, -1, 6]")),
    "center": ("CenterCropPad", {"s": integers(1, 4, HUGE, 6)}, {}, ("model-too-large", "tensor 'y'", "2")),
    "one-hot": ("OneHot", {**BITS, "d": np.array(1 << 50)}, {}, ("model-too-large", "tensor 'y'", "2")),
    "one-hot less": ("OneHot", {**BITS, "d": np.array(-1)}, {}, ("onnx-malformed", NODE, "-1", "2")),
    "one-hot of infinity": ("OneHot", {**BITS, "d": np.array(np.inf)}, {}, ("onnx-malformed", NODE, "inf")),
    "an axis of no number": ("CumSum", {"a": np.array(np.nan)}, {}, ("onnx-malformed", NODE, "nan")),
    "one-hot of none": ("OneHot", {**BITS, "d": integers()}, {}, ("onnx-malformed", NODE, "0 elements")),
    "clip": ("Clip", {"low": np.zeros(0, np.float32)}, {}, ("onnx-malformed", NODE, "0 elements")),
    "power": ("Pow", {"p": np.array(1e30, np.float32)}, {}, ("operator-variant-unsupported", NODE, "1e+30")),
    "power of nan": ("Pow", {"p": np.array(np.nan, np.float32)}, {}, ("onnx-malformed", NODE, "exponents")),
    "slice": (
        "Slice", {"s": integers(0), "e": integers(2), "a": integers(1), "t": integers(0)}, {},
        ("onnx-malformed", NODE, "(0,)"),
    ),
    "slice lengths": (
        "Slice", {"s": integers(0, 1), "e": integers(2), "a": integers(1)}, {}, ("onnx-malformed", NODE, "(0, 1)"),
    ),
    "groups": ("Conv", FILTER, {"group": 0}, ("onnx-malformed", NODE, "4")),
    "groups less": ("ConvTranspose", FILTER, {"group": -4}, ("onnx-malformed", NODE, "-4")),
    "integer weights": (
        "Conv", {"w": np.ones((4, 4, 2, 2), np.int32)}, {}, ("operator-variant-unsupported", NODE, "mixes"),
    ),
    "a short bias": ("Conv", {**FILTER, "b": np.ones(3, np.float32)}, {}, ("operator-variant-unsupported", NODE, "4")),
    "strides": ("ConvTranspose", FILTER, {"strides": [-1, -1]}, ("onnx-malformed", NODE, "-3")),
    "dilations": (
        "ConvTranspose", FILTER, {"dilations": [HUGE, 1]}, ("operator-variant-unsupported", NODE, "(1099511627776, 1)"),
    ),
    "norm": ("LpPool", {}, {"kernel_shape": [2, 2], "p": HUGE}, ("operator-variant-unsupported", NODE, "16")),
    "norm 0": ("LpPool", {}, {"kernel_shape": [2, 2], "p": 0}, ("onnx-malformed", NODE, "p is 0")),
    "nearby channels": ("LRN", {}, {"size": 0}, ("onnx-malformed", NODE, "0")),
    "more channels": ("LRN", {}, {"size": HUGE}, ("model-too-large", "tensor 'y'", "2")),
    "blocks": ("DepthToSpace", {}, {"blocksize": 0}, ("onnx-malformed", NODE, "0")),
    "squares": ("SpaceToDepth", {}, {"blocksize": -2}, ("operator-variant-unsupported", NODE, "-2")),
    "groups of channels": (
        "GroupNormalization", {"s": np.ones(4, np.float32), "b": np.ones(4, np.float32)}, {"num_groups": 0},
        ("onnx-malformed", NODE, "0 groups"),
    ),
    "scales": (
        "BatchNormalization", {name: np.ones(3, np.float32) for name in "sbmv"}, {}, ("onnx-malformed", NODE, "3"),
    ),
    "dimensions": ("Expand", {"s": np.ones(64, np.int64)}, {}, ("operator-variant-unsupported", NODE, "64")),
    "more dimensions": (
        "Reshape", {"s": integers(*[1] * 60, 144)}, {}, ("tensor-rank-unsupported", "tensor 'x'", "61"),
    ),
    "a shape of floats": ("Expand", {"s": np.array([np.inf])}, {}, ("onnx-malformed", NODE, "1", "64")),
    "outputs": ("Split", {}, {"axis": 1, "num_outputs": 3}, ("onnx-malformed", NODE, "3", "1")),
    "a steep function": ("Celu", {}, {"alpha": -1.0}, ("operator-variant-unsupported", NODE, "-1")),
    "logic of numbers": ("Xor", {"z": np.ones(SHAPE, np.float32)}, {}, ("type-unsupported", NODE, "32")),
    "integer filters": ("ConvInteger", {"w": np.array(3, np.int8)}, {}, ("onnx-malformed", NODE, "[]")),
    "a type": ("Cast", {}, {"to": 77}, ("type-unsupported", NODE, "77")),
    "labels": ("Einsum", {}, {"equation": "ij"}, ("onnx-malformed", NODE, "2")),
    "labels of nothing": ("Einsum", {}, {"equation": "abcd->z"}, ("onnx-malformed", NODE, "labels")),
    "labels that are none": ("Einsum", {}, {"equation": "ab..->"}, ("onnx-malformed", NODE, "'ab..'")),
    "a diagonal": ("Einsum", {}, {"equation": "aabc->abc"}, ("onnx-malformed", NODE, "diagonal")),
}  # fmt: skip


@pytest.mark.parametrize("kind", SIZES)
def test_sizes_out_of_range(kind: str) -> None:
    operator, constants, attributes, expected = SIZES[kind]
    code, place, *facts = expected
    assert_refused(refused(operator, constants, attributes, ["y"]), code, place.format(operator), *facts)


@pytest.mark.parametrize("value", [0, -1, 1 << 31, 1 << 62])
@pytest.mark.parametrize("name", ["kernel_shape", "dilations"])
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool", "Conv"])
def test_windows_out_of_range(operator: str, name: str, value: int) -> None:
    attributes = {} if operator == "Conv" else {"kernel_shape": [2, 2]}
    found = refused(operator, FILTER if operator == "Conv" else {}, {**attributes, name: [value, value]}, ["y"])
    words = ("does not fit 6 pixels", "below 1", "attribute kernel_shape is")
    assert_refused(found, "onnx-malformed", f"node 0 ({operator}) writing 'y'")
    assert any(word in found.reason for word in words)


@pytest.mark.parametrize(
    ("scales", "fact"),
    [
        ([1, 1, -1, 1], "has scales [1.0, 1.0, -1.0, 1.0]"),
        ([1, 1, 0, 1], "has scales [1.0, 1.0, 0.0, 1.0]"),
        ([1, 1, np.nan, 1], "has scales [1.0, 1.0, nan, 1.0]"),
        ([1, 1, -np.inf, 1], "has scales [1.0, 1.0, -inf, 1.0]"),
        ([1, 1, np.inf, 1], "has scales [1.0, 1.0, inf, 1.0]"),
        ([1, 1, 1e30, 1], "takes more than 2 GiB"),
        ([1, 1, 2], "has scales [1.0, 1.0, 2.0] for 4 dimensions"),
    ],
)
def test_scales_of_images_out_of_range(scales: list[float], fact: str) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"])
    data = model([node], [("x", SHAPE)], [("y", [None] * 4)], {"s": np.array(scales, np.float32)})
    with pytest.raises((InputFileError, UnsupportedModelError)) as caught:
        parse_onnx(data, "net", "net.onnx")
    assert fact in caught.value.reason


@pytest.mark.parametrize("limits", [(0, np.inf, 1), (0, 1, 0), (0, 1e30, 1)])
def test_ranges_out_of_range(limits: tuple[float, float, float]) -> None:
    nodes = [helper.make_node("Range", ["a", "b", "c"], ["r"]), helper.make_node("Add", ["x", "r"], ["y"])]
    constants = {name: np.array(value, np.float32) for name, value in zip("abc", limits, strict=True)}
    with pytest.raises((InputFileError, UnsupportedModelError)) as caught:
        parse_onnx(model(nodes, [("x", (1,))], [("y", [None])], constants), "net", "net.onnx")
    assert caught.value.place == "net.onnx: node 0 (Range) writing 'r'"
