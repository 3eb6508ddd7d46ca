"""Scales that are computed in each run, as in the networks that onnxruntime's quantize_dynamic writes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph import ops
from mlfbuild.native.graph.nodes import evaluate
from support.board_cases import wrong_networks
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_models import model, reference
from support.refusals import Refusal, assert_onnx_refused

Array = npt.NDArray[Any]

RANDOM = np.random.default_rng(5)


def quantized(x: Array) -> tuple[Array, Array, Array]:
    """Return the numbers, the scale and the zero point of DynamicQuantizeLinear; zeros have the scale 1."""
    with np.errstate(all="ignore"):
        least, greatest = min(np.float32(0), np.fmin.reduce(x, None)), max(np.float32(0), np.fmax.reduce(x, None))
        scale = np.float32((greatest - least) / np.float32(255)) if greatest > least else np.float32(1)
        point = np.rint(np.clip(np.nan_to_num(-least / scale), 0, 255))
        steps = x / scale
        stored = np.clip(np.where(np.isnan(steps), 0, np.rint(steps)) + point, 0, 255)
    return stored.astype(np.uint8), np.array(scale), np.array(point).astype(np.uint8)


INPUTS = {
    "random": RANDOM.normal(size=37).astype(np.float32),
    "positive": RANDOM.random(9).astype(np.float32) + np.float32(2),
    "negative": -RANDOM.random(9).astype(np.float32) - np.float32(2),
    "zeros": np.zeros(5, np.float32),
    "ties": np.array([0, 255, 0.5, 1.5, 2.5, 254.5, 3.4999], np.float32),
    "ties below 0": np.array([-100, 155, -0.5, -1.5, -2.5, 0.5], np.float32),
    "denormal": np.array([1e-45, -3e-45, 0], np.float32),
    "infinite": np.array([np.inf, -1, 3], np.float32),
    "no number": np.array([np.nan, -1, 3], np.float32),
    "overflow": np.array([3e38, -3e38, 1], np.float32),
}


def quantizing(size: int) -> bytes:
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    ports = [("y", (size,)), ("s", ()), ("z", ())]
    return model([node], [("x", (size,))], ports, types={"y": TensorProto.UINT8, "z": TensorProto.UINT8})


def test_numbers_are_quantised_with_a_computed_scale() -> None:
    """Test rounding to even, the ends of float32, and inputs without a range, in numpy and as C."""
    jobs = []
    for number, x in enumerate(INPUTS.values()):
        graph = parse_onnx(quantizing(x.size), f"m{number}", "net.onnx")
        values = evaluate(graph, {"x": x})
        for name, wanted in zip("ysz", quantized(x), strict=True):
            np.testing.assert_array_equal(values[name], wanted)
        library = compile_network(graph)
        jobs.append((library, library.modules[0], [x]))
    for outputs, x in zip(run_many_on_host(jobs), INPUTS.values(), strict=True):
        for value, wanted in zip(outputs, quantized(x), strict=True):
            np.testing.assert_array_equal(value.reshape(wanted.shape), wanted)


def layer(kind: str, dtype: str, *, per_channel: bool) -> tuple[bytes, Callable[[Array], Array]]:
    """Return two layers as quantize_dynamic writes them, and their arithmetic."""
    limits = np.iinfo(dtype)
    image, count = kind != "product", 6 if kind == "depthwise" else 7
    shape = {
        "product": (10, count), "pointwise": (count, 3, 1, 1), "convolution": (count, 3, 3, 2),
        "depthwise": (count, 1, 3, 2),
    }[kind]  # fmt: skip
    low, high = (60, 120) if kind == "depthwise" else (limits.min, limits.max + 1)
    weights = RANDOM.integers(low, high, shape).astype(dtype)
    points = RANDOM.integers(low, high, count if per_channel else ()).astype(dtype)
    scales = RANDOM.random(count if per_channel else ()).astype(np.float32)
    spread = (1, count, 1, 1) if image and per_channel else scales.shape
    constants = {"w": weights, "wz": points, "ws": scales.reshape(spread), "zero": np.zeros((), np.float32)}
    pads, groups = (
        [1, 0, 2, 1] if kind in {"convolution", "depthwise"} else [0, 0, 0, 0],
        3 if kind == "depthwise" else 1,
    )
    window = {"pads": pads, "strides": [2, 1], "group": groups} if image else {}
    product = helper.make_node("ConvInteger" if image else "MatMulInteger", ["q", "w", "z", "wz"], ["sum"], **window)
    nodes = [
        helper.make_node("Add", ["x", "zero"], ["a"]),
        helper.make_node("DynamicQuantizeLinear", ["a"], ["q", "s", "z"]),
        product,
        helper.make_node("Mul", ["s", "ws"], ["scale"]),
        helper.make_node("Cast", ["sum"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["real", "scale"], ["y"]),
    ]
    along = (-1, 1, 1, 1) if image else (-1,)
    centred = weights.astype(np.int64) - (points.astype(np.int64).reshape(along) if per_channel else int(points))

    def expected(x: Array) -> Array:
        stored, scale, point = quantized(x)
        rows = stored.astype(np.int64) - int(point)
        if image:
            padded = np.pad(rows, ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
            windows = np.lib.stride_tricks.sliding_window_view(padded, shape[2:], (2, 3))[:, :, ::2]
            if groups > 1:
                sums = np.einsum("nohwij,oij->nohw", windows.repeat(count // groups, axis=1), centred[:, 0])
            else:
                sums = np.einsum("nchwij,ocij->nohw", windows, centred)
        else:
            sums = rows @ centred
        return np.asarray(sums.astype(np.float32) * (scale * constants["ws"]))

    return model(
        nodes, [("x", (1, 3, 5, 4) if image else (3, 10))], [("y", [None] * (4 if image else 2))], constants
    ), expected


LAYERS = [
    (kind, dtype, per_channel)
    for kind in ("product", "pointwise", "convolution", "depthwise")
    for dtype, per_channel in (("int8", False), ("uint8", False), ("uint8", True))
]


def cases() -> list[tuple[Any, Array, Array]]:
    """Return the graphs of all layers, with inputs and outputs."""
    found = []
    for number, (kind, dtype, per_channel) in enumerate(LAYERS):
        data, expected = layer(kind, dtype, per_channel=per_channel)
        graph = parse_onnx(data, f"m{number}", "net.onnx")
        assert {node.operator.name for node in graph.nodes} & {"MATMUL_INTEGER", "CONV_INTEGER"}
        x = RANDOM.normal(size=graph.tensor("x").shape).astype(np.float32)
        found.append((graph, x, expected(x)))
    return found


def test_layers_of_quantize_dynamic() -> None:
    jobs, wanted = [], []
    for graph, x, right in cases():
        np.testing.assert_allclose(evaluate(graph, {"x": x})["y"], right, rtol=1e-6)
        library = compile_network(graph)
        jobs.append((library, library.modules[0], [x]))
        wanted.append(right)
    for (output,), right in zip(run_many_on_host(jobs), wanted, strict=True):
        np.testing.assert_allclose(output.reshape(right.shape), right, rtol=1e-6)


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", ["cortex-m3", "cortex-m4", "cortex-m55"])
def test_layers_on_boards(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs = [(compile_network(graph, cpu), [x], [right]) for graph, x, right in cases()]
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []


def test_constant_matrices_are_stored_in_eight_bits() -> None:
    data, _ = layer("product", "uint8", per_channel=True)
    graph = parse_onnx(data, "net", "net.onnx")
    (node,) = [node for node in graph.nodes if isinstance(node.operator, ops.MatmulInteger)]
    weights = graph.inputs_of(node)[2]
    assert weights is not None and (weights.dtype.value, weights.shape) == ("int8", (7, 10))


def test_scales_of_pairs_may_be_computed() -> None:
    """The scale and the zero point are inputs of the network; so are those of a matrix and its columns."""
    nodes = [
        helper.make_node("QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"]),
        helper.make_node("DequantizeLinear", ["y", "ys", "yz"], ["real"]),
    ]
    feeds = {
        "a": RANDOM.integers(0, 255, (2, 4)).astype(np.uint8), "as": np.array(0.02, np.float32),
        "az": np.array(120, np.uint8), "b": RANDOM.integers(0, 255, (4, 3)).astype(np.uint8),
        "bs": np.array([0.01, 0.02, 0.015], np.float32), "bz": np.array([110, 130, 125], np.uint8),
        "ys": np.array(0.04, np.float32), "yz": np.array(100, np.uint8),
    }  # fmt: skip
    types = dict.fromkeys(("a", "az", "b", "bz", "yz", "y"), TensorProto.UINT8)
    ports = [(name, value.shape) for name, value in feeds.items()]
    data = model(nodes, ports, [("y", (2, 3)), ("real", (2, 3))], types=types)
    values = evaluate(parse_onnx(data, "net", "net.onnx"), feeds)
    centred = (feeds["b"].astype(np.float64) - feeds["bz"]) * feeds["bs"]
    right = (feeds["a"].astype(np.float64) - feeds["az"]) * 0.02 @ centred / 0.04
    np.testing.assert_array_equal(values["y"], np.clip(np.rint(right) + 100, 0, 255).astype(np.uint8))
    np.testing.assert_allclose(values["real"], np.clip(np.rint(right), -100, 155) * 0.04, rtol=1e-6)


def test_both_matrices_may_be_computed() -> None:
    node = helper.make_node("MatMulInteger", ["a", "b", "az", "bz"], ["y"])
    feeds = {
        "a": RANDOM.integers(0, 255, (2, 3, 4)).astype(np.uint8),
        "b": RANDOM.integers(-128, 127, (4, 5)).astype(np.int8),
        "az": np.array([7], np.uint8), "bz": RANDOM.integers(-128, 127, 5).astype(np.int8),
    }  # fmt: skip
    types = {"a": TensorProto.UINT8, "az": TensorProto.UINT8, "b": TensorProto.INT8, "bz": TensorProto.INT8,
             "y": TensorProto.INT32}  # fmt: skip
    data = model([node], [(name, value.shape) for name, value in feeds.items()], [("y", (2, 3, 5))], types=types)
    made = evaluate(parse_onnx(data, "net", "net.onnx"), feeds)["y"]
    np.testing.assert_array_equal(made, reference(data, feeds)[0])


def integer_product(depth: int, points: tuple[int, ...] = ()) -> bytes:
    """Return a product of two inputs."""
    node = helper.make_node("MatMulInteger", ["a", "b", "", "z"], ["y"])
    shapes = [("a", (2, depth)), ("b", (depth, 3)), ("z", points)]
    types = {"a": TensorProto.UINT8, "b": TensorProto.INT8, "z": TensorProto.INT8, "y": TensorProto.INT32}
    return model([node], shapes, [("y", (2, 3))], types=types)


def product_of_constants(rows: Array, columns: Array) -> bytes:
    """Return a product of an input and a constant matrix with these zero points."""
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    constants = {"b": np.ones((4, 3), np.int8), "za": rows, "zb": columns}
    types = {"a": TensorProto.UINT8, "y": TensorProto.INT32}
    return model([node], [("a", (2, 4))], [("y", (2, 3))], constants, types=types)


NODE = "node 0 (MatMulInteger) writing 'y'"
REFUSED: dict[str, tuple[bytes, Refusal]] = {
    "a large computed matrix": (integer_product(300), ("operator-variant-unsupported", NODE, "16777216")),
    "a zero point of another type": (
        product_of_constants(np.array(-5, np.int8), np.zeros((), np.int8)), ("onnx-malformed", NODE, "int8", "uint8"),
    ),
    "zero points of columns of another type": (
        product_of_constants(np.zeros((), np.uint8), np.full(3, 1 << 30, np.int32)),
        ("onnx-malformed", NODE, "int32", "int8"),
    ),
    "zero points of other columns": (integer_product(4, (2,)), ("onnx-malformed", NODE)),
}  # fmt: skip


@pytest.mark.parametrize(("data", "refusal"), REFUSED.values(), ids=REFUSED)
def test_other_products_are_refused(data: bytes, refusal: Refusal) -> None:
    assert_onnx_refused(data, *refusal)
