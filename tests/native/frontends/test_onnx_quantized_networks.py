"""Quantised ONNX networks: operators in integers, operators in float32, and errors."""

import numpy as np
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from onnx import helper

from mlfbuild.core.errors import MlfError
from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph import DType, ops
from mlfbuild.native.graph.nodes import evaluate
from support.examples import examples
from support.onnx_models import QuantizedNetwork, Scale, reference
from support.onnx_networks import quantized_network
from support.onnx_quantized import RANDOM, assert_within_a_step, check, integers, values_of
from support.refusals import Refusal, assert_onnx_refused

pytestmark = pytest.mark.usefixtures("same_numbers")


def test_movement_stays_in_integers() -> None:
    """Splits, slices, pads, gathers and transposes between pairs with one scale stay in integers."""
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


@pytest.mark.parametrize("operator", ["Softplus", "HardSigmoid", "Erf", "Pow"])
def test_functions_without_an_integer_form_become_tables(operator: str) -> None:
    network = QuantizedNetwork()
    names = [network.input("x", (1, 50), Scale(0.02, 0))]
    if operator == "Pow":
        network.constants["cube"] = np.float32(3)
        names.append("cube")
    network.add(operator, names, "y")
    network.output(network.quantized("y", Scale(0.02, 3)), 2)
    graph = check(network)
    assert any(isinstance(node.operator, ops.Lookup) for node in graph.nodes)


def test_weights_around_another_zero_point_are_integers() -> None:
    network = QuantizedNetwork()
    x = network.input("x", (1, 3, 4, 4), Scale(0.05, 100))
    w = network.weights("w", integers((2, 3, 2, 2), "uint8"), Scale(0.01, 77))
    network.add("Conv", [x, w], "y")
    network.output(network.quantized("y", Scale(0.1, 128)), 4)
    check(network)


def test_a_scale_for_each_channel_of_an_input() -> None:
    network = QuantizedNetwork()
    network.add("Relu", [network.input("x", (1, 3, 4), Scale([0.1, 0.2, 0.3], 5, axis=1))], "y")
    network.output(network.quantized("y", Scale(0.2, 0)), 3)
    check(network, floats=True)


def test_types_and_scales_of_inputs_and_outputs_are_kept() -> None:
    """uint8 becomes int8 only inside the network."""
    network = QuantizedNetwork()
    network.add("Relu", [network.input("x", (1, 3), Scale(0.5, 100))], "y")
    network.output(network.quantized("y", Scale(0.25, 7)), 2)
    graph = parse_onnx(network.bytes(), "net", "net.onnx")
    found = [(graph.tensor(name).dtype, graph.tensor(name).quantization) for name in ("x", "y_q")]
    assert [dtype for dtype, _ in found] == [DType.UINT8, DType.UINT8]
    assert [(held.scale, held.zero_point) for _, held in found if held] == [(0.5, 100), (0.25, 7)]


def test_quantised_weights_that_a_float_network_uses() -> None:
    """Some tools quantise only the weights to make files smaller."""
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
    """Quantisation-aware training exports float32 weights followed by a pair."""
    network = QuantizedNetwork()
    x = network.input("x", (1, 2, 4, 4), Scale(0.05, 128))
    network.constants["w"] = RANDOM.uniform(-1, 1, (3, 2, 3, 3)).astype(np.float32)
    scale = Scale([0.01, 0.008, 0.009], 0, "int8")
    inputs = ["w", *network.parameters("w_q", scale)]
    network.add("QuantizeLinear", inputs, "w_q", axis=0)
    network.add("Conv", [x, network.dequantized("w_q", scale)], "y")
    network.output(network.quantized("y", Scale(0.05, 128)), 4)
    check(network)


def test_an_input_with_two_quantisations() -> None:
    """Its elements have no single meaning, so both are computed."""
    network = QuantizedNetwork()
    first = network.input("x", (1, 6), Scale(0.1, 100))
    parameters = network.parameters("other", Scale(0.3, 7))
    network.add("DequantizeLinear", ["x", *parameters], "second")
    network.add("Add", [first, "second"], "y")
    network.output(network.quantized("y", Scale(0.4, 50)), 2)
    check(network, floats=True)


def test_tensors_read_as_integers_and_as_float32() -> None:
    """A tensor that only one of its readers quantises stays float32."""
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


def test_a_quantised_network_has_only_integers() -> None:
    """Each of the seven operators may differ by a step; the last scale is half as fine as the first one."""
    graph, _, made, wanted = values_of(quantized_network().bytes())
    assert_within_a_step(made, wanted, steps=7)
    assert {tensor.dtype for tensor in graph.tensors.values()} == {DType.UINT8, DType.INT8, DType.INT32}


def bad_scale(value: float) -> bytes:
    network = QuantizedNetwork()
    network.add("Relu", [network.input("x", (1, 3), Scale(value, 0))], "y")
    network.output(network.quantized("y", Scale(value, 0)), 2)
    return network.bytes()


REFUSED: dict[str, tuple[bytes, Refusal]] = {
    "scale 0": (bad_scale(0.0), ("scale-not-positive", "node 0 (DequantizeLinear) writing 'x_real'")),
    "scale inf": (bad_scale(float("inf")), ("scale-not-positive", "node 0 (DequantizeLinear) writing 'x_real'")),
    "scale nan": (bad_scale(float("nan")), ("scale-not-positive", "node 0 (DequantizeLinear) writing 'x_real'")),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_networks_are_refused(name: str) -> None:
    data, expected = REFUSED[name]
    assert_onnx_refused(data, *expected)


SMALL = quantized_network().bytes()


@settings(max_examples=examples(300), deadline=None, derandomize=True)
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
