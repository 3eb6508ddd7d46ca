"""The numpy reference of each operator against TensorFlow Lite Micro or LiteRT, and networks against vectors."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mlfbuild.native.frontends import read_model
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import DType, Operands, Quantization, Tensor, ops
from mlfbuild.native.graph.nodes import evaluate, evaluate_in_turn
from support.examples import examples
from support.networks import OPERATORS_AND_TYPES, cases, judged
from support.oracle import assert_equal, tflite_micro_cases, tflite_micro_run
from support.streaming_networks import STREAMING, streaming_cases
from support.tflite_builder import Network

FLOAT_TOLERANCE = 1e-5
"""Tolerance for float32, relative to a tensor's greatest magnitude."""


@pytest.mark.parametrize(("operator", "dtype"), OPERATORS_AND_TYPES)
@settings(max_examples=examples(60), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_reference_equals_tflite(operator: str, dtype: str, data: st.DataObject) -> None:
    case = data.draw(cases(operator, dtype))
    graph = parse_tflite(case.model, "network", "network.tflite")
    assert operator in [node.operator.name for node in graph.nodes]
    values = evaluate(graph, dict(zip(graph.inputs, case.inputs, strict=True)))
    for name, expected in zip(graph.outputs, judged(operator, dtype, case), strict=True):
        got = values[name]
        assert got.dtype == expected.dtype
        # If a float32 sum cancels, its error is relative to the operands, which are around 1.
        tolerance = FLOAT_TOLERANCE * max(1, np.abs(expected).max()) if got.dtype == np.float32 else 0
        np.testing.assert_allclose(got, expected.reshape(got.shape), rtol=0, atol=tolerance)


@pytest.mark.parametrize("margins", [((1, 2), (0, 0)), ((2, 1), (3, 3)), ((4, 2), (0, 2))])
def test_margins_of_space_to_batch_are_padding(margins: tuple[tuple[int, int], ...]) -> None:
    """TensorFlow Lite Micro does not initialise them; LiteRT uses the zero point."""
    quantization = Quantization((0.5,), (-7,))
    value = np.arange(2 * 3 * 6, dtype=np.int8).reshape(2, 3, 6, 1)
    padded = np.pad(value, ((0, 0), *margins, (0, 0)), constant_values=-7)
    shape = (12, padded.shape[1] // 3, padded.shape[2] // 2, 1)
    output = Tensor("y", shape, DType.INT8, quantization)
    wide = Tensor("padded", padded.shape, DType.INT8, quantization)
    operator, plain = ops.SpaceToBatchNd((3, 2), margins), ops.SpaceToBatchNd((3, 2), ((0, 0), (0, 0)))
    source = Tensor("x", value.shape, DType.INT8, quantization)
    assert operator.check(Operands([source]), [output]) is None
    (got,) = operator.reference(Operands([source]), Operands([value]), [output])
    (expected,) = plain.reference(Operands([wide]), Operands([padded]), [output])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(("operator", "scale", "zero_point"), [("LOGISTIC", 1 / 256, -128), ("TANH", 1 / 128, 0)])
@pytest.mark.parametrize("argument", [1e-8, 3.9, 4.1, 7.9, 8.1, 16.0, 67.4, 1e9])
def test_sigmoids_of_any_scale(operator: str, scale: float, zero_point: int, argument: float) -> None:
    """From 8 on, all arguments are at the ends of the function; below 4e-9, a shift is undefined in C."""
    network = Network()
    network.unary(operator, network.input((256,), argument, 3), scale=scale, zero_point=zero_point)
    model, value = network.build(), np.arange(-128, 128).astype(np.int8)
    graph = parse_tflite(model, "network", "network.tflite")
    got = evaluate(graph, {graph.inputs[0]: value})[graph.outputs[0]]
    np.testing.assert_array_equal(got, tflite_micro_run(model, [value])[0])


MODELS = ("ad_f32", "ad_int8", "ic_f32", "ic_int8", "kws_int8", "vww_f32", "vww_int8")


@pytest.mark.parametrize("model", MODELS)
def test_networks_reproduce_their_vectors(shared: Path, model: str) -> None:
    graph = read_model(shared / "models" / f"{model}.tflite", model)
    vectors = np.load(shared / "golden" / f"{model}.npz")
    assert len(vectors["in0"]) > 0
    for value, expected in zip(vectors["in0"], vectors["out0"], strict=True):
        got = evaluate(graph, {graph.inputs[0]: value.reshape(graph.tensor(graph.inputs[0]).shape)})[graph.outputs[0]]
        tolerance = FLOAT_TOLERANCE * np.abs(expected).max() if got.dtype == np.float32 else 0
        np.testing.assert_allclose(got.reshape(expected.shape), expected, rtol=0, atol=tolerance)


def test_int16_softmax_with_scale_1_65535() -> None:
    """TensorFlow's converter writes the scale 1/65535 for an int16 SOFTMAX and converts it to int32."""
    network = Network()
    scores = network.input((3, 4), 0.07, 2)
    softmax = network.activation((3, 4), 1 / 65535, -(1 << 15), dtype="int16")
    network.operator("SOFTMAX", [scores], softmax, "SoftmaxOptions", Beta=1.0)
    model = network.build([network.unary("QUANTIZE", softmax, scale=2 / 65535, dtype="int32")])
    graph = parse_tflite(model, "network", "network.tflite")
    value = np.arange(-60, 60, 10, dtype=np.int8).reshape(3, 4)
    got = evaluate(graph, {graph.inputs[0]: value})[graph.outputs[0]]
    np.testing.assert_array_equal(got, tflite_micro_run(model, [value])[0])


@pytest.mark.parametrize("quantized", [True, False])
def test_results_of_scalars_are_scalars(quantized: bool) -> None:
    network = Network()
    x = network.input((), 0.1, 3) if quantized else network.input(())
    total = network.add(x, x, scale=0.25 if quantized else None)
    stored = network.quantize(total, 0.3, -7)
    model = network.build([total, stored, network.dequantize(stored)])
    graph = parse_tflite(model, "network", "network.tflite")
    value = np.array(40, np.int8 if quantized else np.float32)
    got = evaluate(graph, {graph.inputs[0]: value})
    for name, expected in zip(graph.outputs, tflite_micro_run(model, [value]), strict=True):
        assert isinstance(got[name], np.ndarray)
        assert got[name].shape == ()
        assert got[name].dtype == graph.tensor(name).dtype.numpy
        assert got[name] == expected.reshape(())


# Several runs of networks with a state, in numpy against TensorFlow Lite Micro.


@pytest.mark.parametrize("kind", STREAMING)
@settings(max_examples=examples(60), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_reference_equals_tflite_micro(kind: str, data: st.DataObject) -> None:
    case = data.draw(streaming_cases(kind))
    graph = parse_tflite(case.model, "network", "network.tflite")
    assert graph.states
    runs = [dict(zip(graph.inputs, inputs, strict=True)) for inputs in case.runs]
    expected = tflite_micro_cases(case.model, case.runs)
    for at, (values, right) in enumerate(zip(evaluate_in_turn(graph, runs), expected, strict=True)):
        for name, value in zip(graph.outputs, right, strict=True):
            assert_equal(values[name], value, f"run {at}", operands=1)


# All 65536 int16 values through functions that only rescale, against TensorFlow Lite Micro.

EVERY = np.arange(-(1 << 15), 1 << 15).astype(np.int16)


@pytest.mark.parametrize("name", ["ABS", "LEAKY_RELU", "RELU"])
def test_every_int16_value(name: str) -> None:
    random = np.random.default_rng(5)
    kind, options = ("LeakyReluOptions", {"Alpha": 0.1}) if name == "LEAKY_RELU" else (None, {})
    for scales in random.uniform(0.001, 0.002, (6, 2)):
        source, output = (float(np.float32(scale)) for scale in scales)
        network = Network()
        x = network.input(EVERY.shape, source, dtype="int16")
        network.unary(name, x, kind, options, scale=output, dtype="int16")
        model = network.build()
        graph = parse_tflite(model, "net", "net.tflite")
        (expected,) = tflite_micro_run(model, [EVERY])
        got = evaluate(graph, {graph.inputs[0]: EVERY})[graph.outputs[0]]
        np.testing.assert_array_equal(got, expected.reshape(-1), err_msg=f"{source} to {output}")
