"""Nodes of ONNX files whose axes, sizes and indices are out of range: one line that names the node and the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import helper

from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from mlfbuild.frontends.onnx import parse_onnx
from support.onnx_models import model

Array = npt.NDArray[Any]
SHAPE = (1, 4, 6, 6)
HUGE = 1 << 40
FILTER = {"w": np.ones((4, 4, 2, 2), np.float32)}
BITS = {"d": np.array(3), "v": np.array([0, 1], np.float32)}


def message(
    operator: str, constants: Mapping[str, Array], attributes: Mapping[str, Any], outputs: Sequence[str]
) -> str:
    """What is said of one node that reads ``x`` and ``constants``."""
    node = helper.make_node(operator, ["x", *constants], list(outputs), **attributes)
    data = model([node], [("x", SHAPE)], [(name, [None] * 4) for name in outputs], constants)
    with pytest.raises((InputFileError, UnsupportedModelError)) as caught:
        parse_onnx(data, "net", "net.onnx")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def integers(*values: int) -> Array:
    return np.array(values, np.int64)


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
def test_an_axis(operator: str, axis: int) -> None:
    constants, attributes = AXES[operator]
    rank = 5 if operator == "OneHot" else 4
    found = message(operator, constants, {**attributes, "axis": axis}, ["y"])
    assert f"node 0 ({operator}) writing 'y': there is no dimension {axis} of {rank}" in found


@pytest.mark.parametrize("operator", ["CumSum", "ReduceSum", "ReduceProd", "ReduceL2", "Squeeze", "Unsqueeze"])
def test_axes_that_are_inputs(operator: str) -> None:
    rank = 5 if operator == "Unsqueeze" else 4
    found = message(operator, {"a": integers(9)}, {}, ["y"])
    assert f"node 0 ({operator}) writing 'y': there is no dimension 9 of {rank}" in found


Case = tuple[str, dict[str, Array], dict[str, Any], str]

SIZES: dict[str, Case] = {
    "axes twice": ("ReduceSum", {"a": integers(1, 1)}, {}, "the dimensions [1, 1] name one twice"),
    "perm": ("Transpose", {}, {"perm": [0, 0, 1, 2]}, "perm [0, 0, 1, 2] does not order 4 dimensions"),
    "gather": ("Gather", {"i": np.array(77)}, {}, "picks positions that are not in dimension 0"),
    "gather by floats": (
        "GatherND", {"i": np.array([[0.5]], np.float32)}, {}, "the indices are float32, not int32 or int64",
    ),
    "gather too deep": ("GatherND", {"i": np.zeros((1, 9), np.int64)}, {}, "indices [1, 9] do not fit"),
    "gather batches": ("GatherND", {"i": np.zeros((1, 1), np.int64)}, {"batch_dims": 7}, "indices [1, 1] do not fit"),
    "gather rank": ("GatherElements", {"i": np.zeros(1, np.int64)}, {}, "indices [1] do not fit a tensor"),
    "scatter": (
        "ScatterND", {"i": np.array([[9]]), "u": np.ones(SHAPE, np.float32)}, {}, "has indices that are not in",
    ),
    "scatter updates": ("ScatterND", {"i": np.array([[0]]), "u": np.ones(3, np.float32)}, {}, "updates 'u'"),
    "compress nothing": ("Compress", {"c": np.array([False])}, {}, "a condition that keeps nothing"),
    "compress too much": (
        "Compress", {"c": np.array([True] * 9)}, {"axis": 1}, "the condition keeps element 8 of 4",
    ),
    "sequences": ("ReverseSequence", {"l": integers(9, 9, 9, 9)}, {}, "has sequences that are longer than 1"),
    "reshape": ("Reshape", {"s": integers(HUGE, HUGE)}, {}, "cannot have the shape"),
    "reshape twice": ("Reshape", {"s": integers(-1, -1)}, {}, "cannot have the shape [-1, -1]"),
    "reshape copies": ("Reshape", {"s": integers(0, 0, 0, 0, 0)}, {}, "copies a dimension that"),
    "tile": ("Tile", {"r": integers(1, 1, HUGE, 1)}, {}, "takes more than 2 GiB"),
    "tile less": ("Tile", {"r": integers(1, 1, -1, 1)}, {}, "repeats [1, 1, -1, 1] do not fit"),
    "tile nothing": ("Tile", {"r": integers(1, 1, 0, 1)}, {}, "has no elements (shape [1, 4, 0, 6])"),
    "expand": ("Expand", {"s": integers(HUGE, 4, 6, 6)}, {}, "takes more than 2 GiB"),
    "expand less": ("Expand", {"s": integers(-2, 4, 6, 6)}, {}, "does not broadcast to [-2, 4, 6, 6]"),
    "pad": ("Pad", {"p": integers(0, 0, 0, 0, HUGE, 0, 0, 0)}, {"mode": "edge"}, "takes more than 2 GiB"),
    "pad mode": ("Pad", {"p": integers(0, 0, 0, 0, 1, 0, 0, 0)}, {"mode": "hello"}, "attribute mode is 'hello'"),
    "pad all off": ("Pad", {"p": integers(0, 0, -9, 0, 0, 0, 0, 0)}, {}, "the result has no elements"),
    "crop": ("CenterCropPad", {"s": integers(1, 4, -1, 6)}, {}, "the sizes [1, 4, -1, 6] do not fit 4 dimensions"),
    "center": ("CenterCropPad", {"s": integers(1, 4, HUGE, 6)}, {}, "takes more than 2 GiB"),
    "one-hot": ("OneHot", {**BITS, "d": np.array(1 << 50)}, {}, "takes more than 2 GiB"),
    "one-hot less": ("OneHot", {**BITS, "d": np.array(-1)}, {}, "has the depth -1 and 2 values"),
    "one-hot of infinity": ("OneHot", {**BITS, "d": np.array(np.inf)}, {}, "the depth is inf"),
    "an axis of no number": ("CumSum", {"a": np.array(np.nan)}, {}, "the axis is nan"),
    "one-hot of none": ("OneHot", {**BITS, "d": integers()}, {}, "the depth has 0 elements"),
    "clip": ("Clip", {"low": np.zeros(0, np.float32)}, {}, "the minimum has 0 elements"),
    "power": ("Pow", {"p": np.array(1e30, np.float32)}, {}, "the exponent 1e+30; supported are whole ones up to 16"),
    "power of nan": ("Pow", {"p": np.array(np.nan, np.float32)}, {}, "has exponents that are no numbers"),
    "slice": (
        "Slice", {"s": integers(0), "e": integers(2), "a": integers(1), "t": integers(0)}, {}, "and steps (0,)",
    ),
    "slice lengths": ("Slice", {"s": integers(0, 1), "e": integers(2), "a": integers(1)}, {}, "has starts (0, 1)"),
    "groups": ("Conv", FILTER, {"group": 0}, "0 groups of 4 channels do not fit"),
    "groups less": ("ConvTranspose", FILTER, {"group": -4}, "-4 groups of a filter for 4 channels do not fit"),
    "no channels": ("Conv", {"w": np.ones((0, 4, 2, 2), np.float32)}, {}, "has no elements"),
    "integer weights": ("Conv", {"w": np.ones((4, 4, 2, 2), np.int32)}, {}, "mixes"),
    "a short bias": ("Conv", {**FILTER, "b": np.ones(3, np.float32)}, {}, "does not fit 4 output channels"),
    "strides": ("ConvTranspose", FILTER, {"strides": [-1, -1]}, "makes an image of -3 by -3 pixels"),
    "dilations": ("ConvTranspose", FILTER, {"dilations": [HUGE, 1]}, f"dilations ({HUGE}, 1)"),
    "norm": ("LpPool", {}, {"kernel_shape": [2, 2], "p": HUGE}, "supported are norms up to 16"),
    "norm 0": ("LpPool", {}, {"kernel_shape": [2, 2], "p": 0}, "attribute p is 0"),
    "nearby channels": ("LRN", {}, {"size": 0}, "a size of 0 does not fit"),
    "more channels": ("LRN", {}, {"size": HUGE}, "takes more than 2 GiB"),
    "blocks": ("DepthToSpace", {}, {"blocksize": 0}, "cannot make blocks of 0"),
    "squares": ("SpaceToDepth", {}, {"blocksize": -2}, "cannot be cut into squares of -2"),
    "groups of channels": (
        "GroupNormalization", {"s": np.ones(4, np.float32), "b": np.ones(4, np.float32)}, {"num_groups": 0},
        "0 groups do not fit",
    ),
    "scales": (
        "BatchNormalization", {name: np.ones(3, np.float32) for name in "sbmv"}, {}, "has 3 scales for",
    ),
    "dimensions": ("Expand", {"s": np.ones(64, np.int64)}, {}, "a shape of 64 dimensions; supported are 32"),
    "more dimensions": ("Reshape", {"s": integers(*[1] * 60, 144)}, {}, "has 61 dimensions; supported are 32"),
    "a shape of floats": ("Expand", {"s": np.array([np.inf])}, {}, "input 1, the shape, is float64, not integers"),
    "outputs": ("Split", {}, {"axis": 1, "num_outputs": 3}, "attribute num_outputs is 3, has 1"),
    "a steep function": ("Celu", {}, {"alpha": -1.0}, "alpha -1; supported are positive ones"),
    "logic of numbers": ("Xor", {"z": np.ones(SHAPE, np.float32)}, {}, "float32[1, 4, 6, 6]; supported is bool"),
    "integer filters": ("ConvInteger", {"w": np.array(3, np.int8)}, {}, "the filter has the shape []"),
    "a type": ("Cast", {}, {"to": 77}, "to 77; supported are float32"),
    "labels": ("Einsum", {}, {"equation": "ij"}, "2 labels do not fit"),
    "labels of nothing": ("Einsum", {}, {"equation": "abcd->z"}, "makes labels of nothing, or one twice"),
    "labels that are none": ("Einsum", {}, {"equation": "ab..->"}, "has the labels 'ab..'"),
    "a diagonal": ("Einsum", {}, {"equation": "aabc->abc"}, "which is not square"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SIZES)
def test_sizes(kind: str) -> None:
    operator, constants, attributes, words = SIZES[kind]
    assert words in message(operator, constants, attributes, ["y"])


@pytest.mark.parametrize("value", [0, -1, 1 << 31, 1 << 62])
@pytest.mark.parametrize("name", ["kernel_shape", "dilations"])
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool", "Conv"])
def test_windows(operator: str, name: str, value: int) -> None:
    attributes = {} if operator == "Conv" else {"kernel_shape": [2, 2]}
    found = message(operator, FILTER if operator == "Conv" else {}, {**attributes, name: [value, value]}, ["y"])
    words = ("does not fit 6 pixels", "below 1", "attribute kernel_shape is")
    assert f"node 0 ({operator}) writing 'y': " in found
    assert any(word in found for word in words)


@pytest.mark.parametrize(
    ("scales", "words"),
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
def test_scales_of_images(scales: list[float], words: str) -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"])
    data = model([node], [("x", SHAPE)], [("y", [None] * 4)], {"s": np.array(scales, np.float32)})
    with pytest.raises((InputFileError, UnsupportedModelError)) as caught:
        parse_onnx(data, "net", "net.onnx")
    assert words in str(caught.value)


@pytest.mark.parametrize("limits", [(0, np.inf, 1), (0, 1, 0), (0, 1e30, 1)])
def test_ranges(limits: tuple[float, float, float]) -> None:
    nodes = [helper.make_node("Range", ["a", "b", "c"], ["r"]), helper.make_node("Add", ["x", "r"], ["y"])]
    constants = {name: np.array(value, np.float32) for name, value in zip("abc", limits, strict=True)}
    with pytest.raises((InputFileError, UnsupportedModelError)) as caught:
        parse_onnx(model(nodes, [("x", (1,))], [("y", [None])], constants), "net", "net.onnx")
    assert "node 0 (Range) writing 'r'" in str(caught.value)
