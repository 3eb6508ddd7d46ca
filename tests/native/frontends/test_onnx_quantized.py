"""Quantised ONNX operators: within one step of ONNX's evaluator, and in integers if there is an integer form.

A network here is one operator between DequantizeLinear and QuantizeLinear.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph import DType
from mlfbuild.native.graph.nodes import evaluate
from support.onnx_models import QuantizedNetwork, Scale
from support.onnx_quantized import PROPERTIES, RANDOM, Array, assert_within_a_step, check, integers, scales, values_of

pytestmark = pytest.mark.usefixtures("same_numbers")


@st.composite
def convolutions(draw: st.DrawFn) -> QuantizedNetwork:
    """Draw groups, weights with one scale or one for each channel, and an int32 or float32 bias."""
    network = QuantizedNetwork()
    groups, inside, outputs = draw(st.sampled_from([(1, 3, 4), (3, 1, 3), (2, 2, 4), (3, 1, 6), (1, 1, 2)]))
    source = draw(scales())
    names = [network.input("x", (1, groups * inside, 6, 5), source)]
    per_channel, unsigned = draw(st.booleans()), draw(st.booleans())
    factors = RANDOM.uniform(0.001, 0.02, outputs if per_channel else ()).astype(np.float32)
    kind = Scale(factors, 128, "uint8") if unsigned else Scale(factors, 0, "int8")
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    stored = RANDOM.integers(-127, 128, (outputs, inside, *kernel)) + (128 if unsigned else 0)
    names.append(network.weights("w", stored, kind))
    bias = draw(st.sampled_from(["none", "int32", "float32"]))
    if bias == "int32":
        products = np.float32(source.scale) * np.broadcast_to(factors, outputs)
        names.append(network.weights("b", RANDOM.integers(-2000, 2000, outputs), Scale(products, 0, "int32")))
    elif bias == "float32":
        network.constants["b"] = RANDOM.uniform(-1, 1, outputs).astype(np.float32)
        names.append("b")
    pads = draw(st.sampled_from([[0, 0, 0, 0], [1, 0, 0, 1]])) if min(kernel) > 1 else [0, 0, 0, 0]
    network.add("Conv", names, "c", group=groups, pads=pads, strides=[draw(st.integers(1, 2)), 1])
    final = network.add("Relu", ["c"], "r") if draw(st.booleans()) else "c"
    target = draw(scales(0.02, 0.1))
    network.output(network.quantized(final, target), 4, target.dtype)
    return network


@PROPERTIES
@given(convolutions())
def test_convolutions(network: QuantizedNetwork) -> None:
    check(network)


@PROPERTIES
@given(st.data())
def test_transposed_convolutions(data: st.DataObject) -> None:
    """The scales of the weights are along their second dimension."""
    network, target = QuantizedNetwork(), data.draw(scales(0.02, 0.1))
    x = network.input("x", (1, 3, 4, 5), data.draw(scales()))
    factors = RANDOM.uniform(0.001, 0.02, 4 if data.draw(st.booleans()) else ()).astype(np.float32)
    stored = RANDOM.integers(-127, 128, (3, 4, 3, 2))
    names = [x, network.weights("w", stored, Scale(factors, 0, "int8", axis=1))]
    if data.draw(st.booleans()):
        network.constants["b"] = RANDOM.uniform(-1, 1, 4).astype(np.float32)
        names.append("b")
    network.add("ConvTranspose", names, "y", strides=[2, 1], dilations=[1, data.draw(st.integers(1, 2))])
    network.output(network.quantized("y", target), 4, target.dtype)
    check(network)


@PROPERTIES
@given(st.data())
def test_dense_layers(data: st.DataObject) -> None:
    """Gemm and MatMul; the scales of MatMul's weights are along their columns."""
    network, target = QuantizedNetwork(), data.draw(scales(0.02, 0.1))
    source = data.draw(scales())
    x = network.input("x", (3, 8), source)
    operator, per_channel = data.draw(st.sampled_from(["Gemm", "Gemm transposed", "MatMul"])), data.draw(st.booleans())
    transposed = operator == "Gemm transposed"
    factors = RANDOM.uniform(0.001, 0.02, 5 if per_channel else ()).astype(np.float32)
    stored = RANDOM.integers(-127, 128, (5, 8) if transposed else (8, 5))
    names = [x, network.weights("w", stored, Scale(factors, 0, "int8", axis=0 if transposed else 1))]
    if operator != "MatMul" and data.draw(st.booleans()):
        products = np.float32(source.scale) * np.broadcast_to(factors, 5)
        names.append(network.weights("b", RANDOM.integers(-2000, 2000, 5), Scale(products, 0, "int32")))
    attributes = {"transB": int(transposed)} if operator != "MatMul" else {}
    network.add(operator.split()[0], names, "y", **attributes)
    network.output(network.quantized("y", target), 2, target.dtype)
    check(network)


@PROPERTIES
@given(st.data())
def test_operators_with_two_operands(data: st.DataObject) -> None:
    """Two tensors, or a tensor and a number; the output's scale covers all results."""
    network, operator = QuantizedNetwork(), data.draw(st.sampled_from(["Add", "Sub", "Mul"]))
    first, second = data.draw(scales()), data.draw(scales())
    names = [network.input("x", (1, 3, 4, 2), first)]
    if data.draw(st.booleans()):
        network.constants["c"] = np.array(data.draw(st.sampled_from([0.37, -2.5, 1.0])), np.float32)
        names.append("c")
    else:
        names.append(network.input("z", data.draw(st.sampled_from([(1, 3, 4, 2), (3, 1, 1), (1, 1, 1, 2)])), second))
    network.add(operator, names if data.draw(st.booleans()) else names[::-1], "y")
    both = float(first.scale) + float(second.scale)
    target = data.draw(scales(both, both * 4))
    network.output(network.quantized("y", target), 4, target.dtype)
    check(network)


@PROPERTIES
@given(source=scales(), divisor=scales(), target=scales(0.05, 1.0))
def test_quotients(source: Scale, divisor: Scale, target: Scale) -> None:
    """Divide by constants other than 0, for which a quotient is infinite."""
    network = QuantizedNetwork()
    stored = integers((1, 3, 4, 2), divisor.dtype)
    stored[stored == divisor.zero_point] ^= 1
    x = network.input("x", (1, 3, 4, 2), source)
    network.add("Div", [x, network.weights("w", stored, divisor)], "y")
    network.output(network.quantized("y", target), 4, target.dtype)
    check(network)


UNARY: dict[str, dict[str, Any]] = {
    "Relu": {}, "LeakyRelu": {"alpha": 0.1}, "Abs": {}, "GlobalAveragePool": {}, "GlobalMaxPool": {},
    "MaxPool": {"kernel_shape": [2, 2]}, "ReduceMean": {"keepdims": 0}, "ReduceMax": {}, "ReduceMin": {},
    "ReduceSum": {}, "Elu": {}, "HardSwish": {}, "Neg": {}, "Transpose": {"perm": [0, 3, 1, 2]}, "Flatten": {},
    "DepthToSpace": {"blocksize": 2}, "SpaceToDepth": {"blocksize": 2},
}  # fmt: skip


@pytest.mark.parametrize("operator", UNARY)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.data())
def test_operators_with_one_operand(operator: str, data: st.DataObject) -> None:
    network = QuantizedNetwork()
    source, target = data.draw(scales()), data.draw(scales())
    x = network.input("x", (1, 4, 4, 6), source)
    network.add(operator, [x], "y", **UNARY[operator])
    rank = {"Flatten": 2, "ReduceMean": 0, "ReduceMax": 4}.get(operator, 4)
    network.output(network.quantized("y", target), rank, target.dtype)
    check(network)


@pytest.mark.parametrize(
    ("operator", "function", "least"), [("Exp", np.exp, -np.inf), ("Log", np.log, 0.01), ("Sqrt", np.sqrt, 0.0)]
)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(source=scales(0.01, 0.03), target=scales())
def test_tabulated_functions(
    operator: str, function: Callable[[Array], Array], least: float, source: Scale, target: Scale
) -> None:
    """Test all 256 values for which the function is finite; ONNX's evaluator does not handle infinity."""
    network = QuantizedNetwork()
    network.add(operator, [network.input("x", (256,), source)], "y")
    network.output(network.quantized("y", target), 1, target.dtype)
    graph = parse_onnx(network.bytes(), "net", "net.onnx")
    x = np.arange(256, dtype=np.uint8).view(source.dtype)
    made = evaluate(graph, {"x": x})["y_q"].astype(np.int64)
    real = (x.astype(np.float64) - source.zero_point) * np.float64(source.scale)
    low, high = np.iinfo(target.dtype).min, np.iinfo(target.dtype).max
    defined = real >= least
    wanted = np.clip(np.rint(function(real[defined]) / np.float64(target.scale)) + target.zero_point, low, high)
    assert np.abs(made[defined] - wanted).max(initial=0) <= 1
    assert all(tensor.dtype is not DType.FLOAT32 for tensor in graph.tensors.values())


@pytest.mark.parametrize("operator", ["Sigmoid", "Tanh", "Softmax"])
@settings(max_examples=12, deadline=None, derandomize=True)
@given(source=scales(0.01, 0.1), fine=st.booleans())
def test_functions_with_a_fixed_output_scale(operator: str, source: Scale, fine: bool) -> None:
    """If the output has a finer scale, SOFTMAX is computed in float32; the others are tables."""
    network = QuantizedNetwork()
    steps = 128 if operator == "Tanh" else 256
    scale = float(np.float32(1 / steps)) * (0.5 if fine else 1.0)
    network.add(operator, [network.input("x", (2, 3, 5), source)], "y")
    network.output(network.quantized("y", Scale(scale, 0 if operator == "Tanh" else -128, "int8")), 3, "int8")
    check(network, floats=fine and operator == "Softmax")


POOLS: dict[str, dict[str, Any]] = {
    "all counts are equal": {"kernel_shape": [3, 2]},
    "padding counts": {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "count_include_pad": 1},
    "padding does not count": {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]},
    "positions are rounded up": {"kernel_shape": [4, 3], "strides": [3, 2], "ceil_mode": 1},
}


def pool(ratio: float, kinds: tuple[str, str], **attributes: Any) -> QuantizedNetwork:
    """Return an AveragePool whose output has ``ratio`` times the scale of its input."""
    network = QuantizedNetwork()
    points = {"uint8": 120, "int8": -20, "int16": 0}
    source, target = (Scale(scale, points[kind], kind) for scale, kind in zip((0.1, 0.1 * ratio), kinds, strict=True))
    network.add("AveragePool", [network.input("x", (1, 6, 9, 8), source)], "y", **attributes)
    network.output(network.quantized("y", target), 4, target.dtype)
    return network


@pytest.mark.parametrize("kinds", [("uint8", "uint8"), ("int8", "int8"), ("uint8", "int8"), ("int16", "int16")])
@pytest.mark.parametrize("ratio", [0.3127, 0.7713, 1.1339, 2.9171])
@pytest.mark.parametrize("name", POOLS)
def test_average_pools_equal_the_evaluator(name: str, ratio: float, kinds: tuple[str, str]) -> None:
    """A mean is rounded once, with the output's scale; with these ratios no mean is halfway between two steps."""
    graph, _, made, wanted = values_of(pool(ratio, kinds, **POOLS[name]).bytes())
    assert [node.operator.name for node in graph.nodes].count("AVERAGE_POOL_2D") == 1
    assert DType.FLOAT32 not in {tensor.dtype for tensor in graph.tensors.values()}
    assert_within_a_step(made, wanted, steps=1 if "int16" in kinds else 0)  # the evaluator's float32 has 24 bits


@pytest.mark.parametrize("ratio", [0.31, 1.13])
@pytest.mark.parametrize("operator", ["GlobalAveragePool", "ReduceMean", "ReduceSum"])
def test_means_and_sums_equal_the_evaluator(operator: str, ratio: float) -> None:
    network = QuantizedNetwork()
    x = network.input("x", (2, 50, 7, 7), Scale(0.01, 110))
    axes = {} if operator == "GlobalAveragePool" else {"axes": np.array([2, 3])}
    network.constants |= axes
    network.add(operator, [x, *axes], "y")
    scale = 0.01 * ratio * (1 if operator != "ReduceSum" else 7)
    network.output(network.quantized("y", Scale(scale, 120)), 4)
    graph, _, made, wanted = values_of(network.bytes())
    assert DType.FLOAT32 not in {tensor.dtype for tensor in graph.tensors.values()}
    np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("size", [[2, 2], [1, 3], [4, 5]])
def test_ties_of_means_go_to_the_even_step(size: list[int]) -> None:
    """With a power of two as both scales, the evaluator's float32 arithmetic is exact."""
    network = QuantizedNetwork()
    x = network.input("x", (1, 64, 8, 15), Scale(0.25, 117))
    network.add("AveragePool", [x], "y", kernel_shape=size, strides=size)
    network.output(network.quantized("y", Scale(0.25, 120)), 4)
    _, _, made, wanted = values_of(network.bytes())
    np.testing.assert_array_equal(made, wanted)


def test_average_pools_without_room_for_the_sum_run_in_float32() -> None:
    """The sum of int16 has too few bits left after the point."""
    network = QuantizedNetwork()
    x = network.input("x", (1, 1, 128, 64), Scale(0.1, 0, "int16"))
    network.add("AveragePool", [x], "y", kernel_shape=[128, 64])
    network.output(network.quantized("y", Scale(0.0001, 0, "int16")), 4, "int16")
    graph, _, made, wanted = values_of(network.bytes())
    assert DType.FLOAT32 in {tensor.dtype for tensor in graph.tensors.values()}
    assert np.abs(made[0].astype(np.int64) - wanted[0]).max() <= 1


@pytest.mark.parametrize(
    ("way", "size", "exact"),
    [
        ("half_pixel", (8, 20), True),
        ("asymmetric", (16, 10), True),
        ("align_corners", (7, 9), True),
        ("half_pixel", (8, 15), False),
        ("align_corners", (8, 9), False),
    ],
)
@pytest.mark.parametrize("ratio", [1.0, 1.3, 0.5])
def test_bilinear_resizing(way: str, size: tuple[int, int], exact: bool, ratio: float) -> None:
    """Integers are used if they represent the positions exactly and the output's scale is not finer."""
    network = QuantizedNetwork()
    x = network.input("x", (1, 3, 4, 5), Scale(0.1, 120))
    network.constants["sizes"] = np.array([1, 3, *size])
    network.add("Resize", [x, "", "", "sizes"], "y", mode="linear", coordinate_transformation_mode=way)
    network.output(network.quantized("y", Scale(float(np.float32(0.1)) * ratio, 130)), 4)
    check(network, floats=ratio < 1 or not exact)


@PROPERTIES
@given(st.data())
def test_concatenation(data: st.DataObject) -> None:
    network, target = QuantizedNetwork(), data.draw(scales(0.02, 0.2))
    names = [network.input(f"x{index}", (1, 2, 3), data.draw(scales())) for index in range(3)]
    network.add("Concat", names, "y", axis=data.draw(st.integers(0, 2)))
    network.output(network.quantized("y", target), 3, target.dtype)
    check(network)


@pytest.mark.parametrize(("low", "high"), [(0.0, 6.0), (-1.0, 1.0), (-0.5, 3.0), (0.0, None), (None, 2.0)])
@pytest.mark.parametrize("scale", [Scale(0.05, 100), Scale(0.01, 0), Scale(0.05, -128, "int8")])
def test_clip(low: float | None, high: float | None, scale: Scale) -> None:
    network = QuantizedNetwork()
    names = [network.input("x", (1, 200), scale)]
    for name, bound in (("low", low), ("high", high)):
        names.append("" if bound is None else name)
        if bound is not None:
            network.constants[name] = np.array(bound, np.float32)
    network.add("Clip", names, "y")
    network.output(network.quantized("y", Scale(0.03, 90)), 2)
    check(network)


def test_product_of_two_computed_matrices() -> None:
    network = QuantizedNetwork()
    a = network.input("a", (2, 3, 4), Scale(0.02, 120))
    b = network.input("b", (2, 4, 5), Scale(0.03, 10, "int8"))
    network.add("MatMul", [a, b], "y")
    network.output(network.quantized("y", Scale(0.05, 128)), 3)
    check(network)
