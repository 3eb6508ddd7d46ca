"""Quantised ONNX networks: within one step of ONNX's evaluator operator by operator, in integers where there is a form.

A network here is one operator between DequantizeLinear and QuantizeLinear, unless a test says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from mlfbuild.errors import MlfError, UnsupportedModelError
from mlfbuild.frontends.onnx import parse_onnx
from mlfbuild.graph import DType, Graph
from mlfbuild.graph.evaluate import evaluate
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_models import QuantizedNetwork, Scale, model, reference
from support.onnx_networks import quantized_network

Array = np.ndarray[Any, np.dtype[Any]]
RANDOM = np.random.default_rng(11)
START = RANDOM.bit_generator.state
BYTES = ("uint8", "int8")
PROPERTIES = settings(max_examples=40, deadline=None, derandomize=True)


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Each test draws the same numbers, whichever tests run."""
    RANDOM.bit_generator.state = START


def integers(shape: Sequence[int], dtype: str) -> Array:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


def values_of(data: bytes) -> tuple[Graph, list[Array], list[Array], list[Array]]:
    """The graph of ``data``, random inputs, and the outputs by this frontend and by ONNX's evaluator."""
    graph = parse_onnx(data, "net", "net.onnx")
    inputs = [integers(graph.tensor(name).shape, graph.tensor(name).dtype.value) for name in graph.inputs]
    feeds = dict(zip(graph.inputs, inputs, strict=True))
    values = evaluate(graph, feeds)
    return graph, inputs, [values[name] for name in graph.outputs], reference(data, feeds)


def assert_within_a_step(made: Sequence[Array], wanted: Sequence[Array], steps: int = 1) -> None:
    for one, other in zip(made, wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert np.abs(one.astype(np.int64) - other.astype(np.int64)).max() <= steps


def check(network: QuantizedNetwork, *, floats: bool = False, domains: Sequence[str] = ()) -> Graph:
    """The outputs are right, and computed in integers unless ``floats``."""
    graph, _, made, wanted = values_of(network.bytes(domains=domains))
    assert_within_a_step(made, wanted)
    assert any(tensor.dtype is DType.FLOAT32 for tensor in graph.tensors.values()) == floats
    return graph


@st.composite
def scales(draw: st.DrawFn, least: float = 0.005, greatest: float = 0.2) -> Scale:
    dtype = draw(st.sampled_from(BYTES))
    low = -128 if dtype == "int8" else 0
    scale = float(np.float32(draw(st.floats(least, greatest))))
    return Scale(scale, draw(st.sampled_from([low, low + 128, low + 100, low + 255])), dtype)


def fitting(real: Array, dtype: str) -> Scale:
    """A scale that covers ``real``."""
    low, high = min(float(real.min()), 0.0), max(float(real.max()), 0.1)
    scale = float(np.float32((high - low) / 255))
    return Scale(scale, int(np.clip(round(-low / scale), 0, 255)) - (128 if dtype == "int8" else 0), dtype)


@st.composite
def convolutions(draw: st.DrawFn) -> QuantizedNetwork:
    """Any groups, weights with one scale or one for each channel, biases as int32 or float32."""
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
    """Gemm and MatMul, the scales of the latter's weights along their columns."""
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
def test_two_operands(data: st.DataObject) -> None:
    """Two tensors, or a tensor and a number; an output as wide as the results are."""
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


UNARY: dict[str, dict[str, Any]] = {
    "Relu": {},
    "LeakyRelu": {"alpha": 0.1},
    "Abs": {},
    "GlobalAveragePool": {},
    "GlobalMaxPool": {},
    "MaxPool": {"kernel_shape": [2, 2]},
    "ReduceMean": {"keepdims": 0},
    "ReduceMax": {},
    "ReduceMin": {},
    "ReduceSum": {},
    "Transpose": {"perm": [0, 3, 1, 2]},
    "Flatten": {},
    "DepthToSpace": {"blocksize": 2},
    "SpaceToDepth": {"blocksize": 2},
}


@pytest.mark.parametrize("operator", UNARY)
@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.data())
def test_one_operand(operator: str, data: st.DataObject) -> None:
    network = QuantizedNetwork()
    source, target = data.draw(scales()), data.draw(scales())
    x = network.input("x", (1, 4, 4, 6), source)
    network.add(operator, [x], "y", **UNARY[operator])
    rank = {"Flatten": 2, "ReduceMean": 0, "ReduceMax": 4}.get(operator, 4)
    network.output(network.quantized("y", target), rank, target.dtype)
    check(network)


@pytest.mark.parametrize("operator", ["Sigmoid", "Tanh", "Softmax"])
@settings(max_examples=12, deadline=None, derandomize=True)
@given(source=scales(0.01, 0.1), fine=st.booleans())
def test_functions_whose_integer_form_has_a_scale_of_its_own(operator: str, source: Scale, fine: bool) -> None:
    """A finer output is computed in float32."""
    network = QuantizedNetwork()
    steps = 128 if operator == "Tanh" else 256
    scale = float(np.float32(1 / steps)) * (0.5 if fine else 1.0)
    network.add(operator, [network.input("x", (2, 3, 5), source)], "y")
    network.output(network.quantized("y", Scale(scale, 0 if operator == "Tanh" else -128, "int8")), 3, "int8")
    check(network, floats=fine)


@pytest.mark.parametrize("ratio", [1.0, 1.7, 0.5])
def test_average_pool(ratio: float) -> None:
    """Rounded on the input's scale first, and so only where the output's is no finer."""
    network = QuantizedNetwork()
    x = network.input("x", (1, 3, 6, 6), Scale(0.1, 120))
    network.add("AveragePool", [x], "y", kernel_shape=[3, 2], pads=[1, 0, 1, 0], count_include_pad=1)
    network.output(network.quantized("y", Scale(float(np.float32(0.1)) * ratio, 130)), 4)
    check(network, floats=ratio < 1)


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
    """In integers where these hold the positions exactly, and the wanted scale is no finer."""
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


def test_movement_stays_in_integers() -> None:
    """Splits, slices, pads, gathers and transposes between the pairs; the pair between them has one scale."""
    network, scale = QuantizedNetwork(), Scale(0.05, 100)
    x = network.input("x", (1, 4, 5, 6), scale)
    network.constants |= {
        "pads": np.array([0, 0, 1, 0, 0, 0, 0, 2]),
        "starts": np.array([1]), "ends": np.array([5]), "axes": np.array([3]), "picked": np.array([2, 0, 3]),
        "shape": np.array([0, 3, -1]), "repeats": np.array([1, 1, 2]),
    }  # fmt: skip
    network.add("Pad", [x, "pads"], "padded")
    network.add("Slice", ["padded", "starts", "ends", "axes"], "sliced")
    network.add("Gather", [network.requantized("sliced", scale), "picked"], "gathered", axis=1)
    network.add("Transpose", ["gathered"], "turned", perm=[0, 1, 3, 2])
    network.add("Reshape", ["turned", "shape"], "flat")
    network.add("Tile", ["flat", "repeats"], "tiled")
    network.nodes.append(helper.make_node("Split", ["tiled"], ["p", "q"], axis=2, num_outputs=2))
    network.add("Concat", ["q", "p"], "joined", axis=1)
    network.output(network.quantized("joined", scale), 3)
    check(network)


@pytest.mark.parametrize("operator", ["Exp", "Sqrt", "Softplus", "HardSigmoid", "Div", "Elu"])
def test_operators_without_an_integer_form_compute_in_float32(operator: str) -> None:
    network = QuantizedNetwork()
    names = [network.input("x", (1, 50), Scale(0.02, 0))]
    if operator == "Div":
        names.append(network.weights("w", integers((50,), "uint8") | 1, Scale(0.1, 0)))
    network.add(operator, names, "y")
    network.output(network.quantized("y", Scale(0.02, 3)), 2)
    check(network, floats=True)


def test_weights_around_another_zero_point_compute_in_float32() -> None:
    network = QuantizedNetwork()
    x = network.input("x", (1, 3, 4, 4), Scale(0.05, 100))
    w = network.weights("w", integers((2, 3, 2, 2), "uint8"), Scale(0.01, 77))
    network.add("Conv", [x, w], "y")
    network.output(network.quantized("y", Scale(0.1, 128)), 4)
    check(network, floats=True)


def test_a_scale_for_each_channel_of_an_input() -> None:
    network = QuantizedNetwork()
    network.add("Relu", [network.input("x", (1, 3, 4), Scale([0.1, 0.2, 0.3], 5, axis=1))], "y")
    network.output(network.quantized("y", Scale(0.2, 0)), 3)
    check(network, floats=True)


def test_types_and_scales_of_inputs_and_outputs_stay() -> None:
    """uint8 is int8 inside only."""
    network = QuantizedNetwork()
    network.add("Relu", [network.input("x", (1, 3), Scale(0.5, 100))], "y")
    network.output(network.quantized("y", Scale(0.25, 7)), 2)
    graph = parse_onnx(network.bytes(), "net", "net.onnx")
    found = [(graph.tensor(name).dtype, graph.tensor(name).quantization) for name in ("x", "y_q")]
    assert [dtype for dtype, _ in found] == [DType.UINT8, DType.UINT8]
    assert [(held.scale, held.zero_point) for _, held in found if held] == [(0.5, 100), (0.25, 7)]


def test_quantised_weights_that_a_float_network_uses() -> None:
    """Only the weights are quantised, as some tools do to make files smaller."""
    network = QuantizedNetwork()
    network.inputs.append(helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (1, 2, 4, 4)))
    network.outputs.append(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None] * 4))
    network.add(
        "Conv", ["x", network.weights("w", integers((3, 2, 3, 3), "int8"), Scale([0.1, 0.2, 0.3], 0, "int8"))], "y"
    )
    data, x = network.bytes(), RANDOM.standard_normal((1, 2, 4, 4)).astype(np.float32)
    made = evaluate(parse_onnx(data, "net", "net.onnx"), {"x": x})["y"]
    np.testing.assert_allclose(made, reference(data, {"x": x})[0], rtol=1e-4, atol=1e-3)


def test_float_weights_that_the_network_quantises() -> None:
    """What training for quantisation exports: float32 weights, then a pair."""
    network = QuantizedNetwork()
    x = network.input("x", (1, 2, 4, 4), Scale(0.05, 128))
    network.constants["w"] = RANDOM.uniform(-1, 1, (3, 2, 3, 3)).astype(np.float32)
    scale = Scale([0.01, 0.008, 0.009], 0, "int8")
    inputs = ["w", *network.parameters("w_q", scale)]
    network.add("QuantizeLinear", inputs, "w_q", axis=0)
    network.add("Conv", [x, network.dequantized("w_q", scale)], "y")
    network.output(network.quantized("y", Scale(0.05, 128)), 4)
    check(network)


def operator_by_operator() -> dict[str, QuantizedNetwork]:
    """QLinearConv, QLinearMatMul and MatMulInteger, ConvInteger; what they are written out as is tested above."""
    made = {}
    network = QuantizedNetwork()
    network.inputs.append(helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, (1, 2, 5, 5)))
    network.constants |= {"w": integers((4, 2, 3, 3), "int8"), "b": RANDOM.integers(-900, 900, 4).astype(np.int32)}
    x, w = (
        network.parameters("x", Scale(0.02, 120)),
        network.parameters("w", Scale([0.01, 0.02, 0.01, 0.03], 0, "int8")),
    )
    y = network.parameters("y", Scale(0.1, 110))
    network.add("QLinearConv", ["x", *x, "w", *w, *y, "b"], "y", pads=[1, 1, 1, 1])
    network.output("y", 4)
    made["QLinearConv"] = network

    network = QuantizedNetwork()
    network.inputs.append(helper.make_tensor_value_info("a", onnx.TensorProto.UINT8, (3, 6)))
    network.constants |= {"b": RANDOM.integers(-127, 128, (6, 4)).astype(np.int8)}
    a, b = (
        network.parameters("a", Scale(0.02, 120)),
        network.parameters("b", Scale([0.01, 0.02, 0.01, 0.03], 0, "int8")),
    )
    network.add("QLinearMatMul", ["a", *a, "b", *b, *network.parameters("y", Scale(0.05, 110))], "y")
    network.output("y", 2)
    made["QLinearMatMul"] = network

    for operator, shape, weights in (("MatMulInteger", (3, 6), (6, 4)), ("ConvInteger", (1, 2, 5, 5), (4, 2, 3, 3))):
        network = QuantizedNetwork()
        network.inputs.append(helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, shape))
        network.constants |= {"w": integers(weights, "int8"), "zx": np.uint8(77), "zw": np.int8(3)}
        network.add(operator, ["x", "w", "zx", "zw"], "y")
        network.output("y", len(shape), "int32")
        made[operator] = network
    return made


@pytest.mark.parametrize("operator", ["QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger"])
def test_operators_on_integers(operator: str) -> None:
    check(operator_by_operator()[operator], floats=operator.endswith("Integer"))


MICROSOFT = ("QLinearAdd", "QLinearMul", "QLinearAveragePool", "QLinearGlobalAveragePool", "QLinearSigmoid",
             "QLinearLeakyRelu", "QLinearConcat")  # fmt: skip


@pytest.mark.parametrize("operator", MICROSOFT)
def test_microsofts_operators_are_what_they_are_written_out_as(operator: str) -> None:
    """ONNX's evaluator does not know them: they must equal the pairs around ONNX's own operator."""
    scale = Scale(1 / 256, 0) if operator == "QLinearSigmoid" else Scale(0.06, 100)
    attributes: dict[str, Any] = {"QLinearAveragePool": {"kernel_shape": [2, 2]}, "QLinearConcat": {"axis": 1}}.get(
        operator, {}
    )
    inputs = 2 if operator in {"QLinearAdd", "QLinearMul", "QLinearConcat"} else 1
    pairs, alone = QuantizedNetwork(), QuantizedNetwork()
    sources = [Scale(0.05, 100), Scale(0.03, 128)][:inputs]
    real = [pairs.input(f"x{index}", (1, 2, 4, 4), source) for index, source in enumerate(sources)]
    pairs.add(operator.removeprefix("QLinear"), real, "y", **attributes)
    pairs.output(pairs.quantized("y", scale), 4)
    names: list[str] = []
    for index, source in enumerate(sources):
        alone.inputs.append(pairs.inputs[index])
        names += [f"x{index}", *alone.parameters(f"x{index}", source)]
    final = alone.parameters("y", scale)
    ordered = [*final, *names] if operator == "QLinearConcat" else [*names, *final]
    alone.add(operator, ordered, "y", domain="com.microsoft", **attributes)
    alone.output("y", 4)
    graph, inputs_, made, _ = values_of_pairs(pairs)
    other = parse_onnx(alone.bytes(domains=["com.microsoft"]), "net", "net.onnx")
    values = evaluate(other, dict(zip(other.inputs, inputs_, strict=True)))
    np.testing.assert_array_equal(values["y"], made[0])
    assert [type(node.operator) for node in other.nodes] == [type(node.operator) for node in graph.nodes]


def values_of_pairs(network: QuantizedNetwork) -> tuple[Graph, list[Array], list[Array], list[Array]]:
    found = values_of(network.bytes())
    assert_within_a_step(found[2], found[3])
    return found


def test_as_c() -> None:
    """Networks of all kinds in one program under sanitizers: bit for bit what numpy makes of the graph."""
    networks = [quantized_network(), *operator_by_operator().values()]
    jobs, expected = [], []
    for number, network in enumerate(networks):
        graph, inputs, made, _ = values_of(network.bytes())
        renamed = Graph(f"m{number}", list(graph.tensors.values()), graph.nodes, graph.inputs, graph.outputs)
        library = compile_network(renamed)
        jobs.append((library, library.modules[0], inputs))
        expected.append(made)
    for outputs, wanted in zip(run_many_on_host(jobs), expected, strict=True):
        for output, other in zip(outputs, wanted, strict=True):
            np.testing.assert_array_equal(output.reshape(other.shape), other)


def test_a_network_is_integers_all_through() -> None:
    """Each of its seven operators may be off by a step, and the last one's scale is half as fine as the first one's."""
    graph, _, made, wanted = values_of(quantized_network().bytes())
    assert_within_a_step(made, wanted, steps=7)
    assert {tensor.dtype for tensor in graph.tensors.values()} == {DType.UINT8, DType.INT8, DType.INT32}


def dynamic() -> bytes:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["y"]),
    ]
    return model(nodes, [("x", (1, 2))], [("y", (1, 3))], {"w": integers((2, 3), "int8")})


def too_large() -> bytes:
    network = QuantizedNetwork()
    network.inputs.append(helper.make_tensor_value_info("x", onnx.TensorProto.UINT8, (1, 1000)))
    network.constants["w"] = np.full((1000, 1), 127, np.int8)
    network.add("MatMulInteger", ["x", "w"], "y")
    network.output("y", 2, "int32")
    return network.bytes()


def bad_scale(value: float) -> bytes:
    network = QuantizedNetwork()
    network.add("Relu", [network.input("x", (1, 3), Scale(value, 0))], "y")
    network.output(network.quantized("y", Scale(value, 0)), 2)
    return network.bytes()


def computed_scale() -> bytes:
    network = QuantizedNetwork()
    network.add("Relu", [network.input("x", (1, 3), Scale(1.0, 0))], "y")
    network.inputs.append(helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, ()))
    network.add("QuantizeLinear", ["y", "s"], "q")
    network.output("q", 2)
    return network.bytes()


REFUSED: dict[str, tuple[bytes, str]] = {
    "dynamic": (
        dynamic(),
        "node 0 (DynamicQuantizeLinear) writing 'q': not supported; quantise the network statically",
    ),
    "large sums": (too_large(), "node 0 (MatMulInteger) writing 'y': sums of up to 32385000, beyond 16777216"),
    "scale 0": (bad_scale(0.0), "1 scales and zero points of uint8; supported is one, positive"),
    "scale inf": (bad_scale(float("inf")), "1 scales and zero points of uint8; supported is one, positive"),
    "scale nan": (bad_scale(float("nan")), "1 scales and zero points of uint8; supported is one, positive"),
    "computed scale": (computed_scale(), "scales and zero points that are not constant"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    data, words = REFUSED[name]
    with pytest.raises(UnsupportedModelError) as caught:
        parse_onnx(data, "net", "net.onnx")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


SMALL = quantized_network().bytes()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(0, len(SMALL) - 1), st.integers(0, 255))
def test_a_damaged_byte_never_makes_a_traceback(position: int, value: int) -> None:
    data = bytearray(SMALL)
    data[position] = value
    try:
        parse_onnx(bytes(data), "net", "net.onnx")
    except MlfError as error:
        lines = str(error).count("\n")
    else:
        lines = 0
    assert lines == 0


def test_an_input_that_two_readers_take_differently() -> None:
    """Then its elements mean nothing by themselves: both are computed."""
    network = QuantizedNetwork()
    first = network.input("x", (1, 6), Scale(0.1, 100))
    parameters = network.parameters("other", Scale(0.3, 7))
    network.add("DequantizeLinear", ["x", *parameters], "second")
    network.add("Add", [first, "second"], "y")
    network.output(network.quantized("y", Scale(0.4, 50)), 2)
    check(network, floats=True)


def test_an_input_that_is_an_output_and_a_tensor_that_is_read_in_float32() -> None:
    """What is quantised for one reader and real for another stays float32."""
    network = QuantizedNetwork()
    x = network.input("x", (1, 2, 3, 3), Scale(0.1, 100))
    w = network.weights("w", integers((2, 2, 2, 2), "int8"), Scale(0.01, 0, "int8"))
    network.add("Conv", [x, w], "c")
    network.add("Exp", [network.requantized("c", Scale(0.05, 128))], "e")
    network.add("Mul", ["c", "e"], "y")
    network.output(network.quantized("y", Scale(0.5, 128)), 4)
    network.add("Identity", ["x"], "same")
    network.output("same", 4)
    check(network, floats=True)
