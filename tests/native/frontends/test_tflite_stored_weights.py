"""Weights of other types than those of their layer: float16, int8 of float32 or int16 layers, and int4."""

import numpy as np
import pytest
from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_on_host
from support.native import compile_bytes
from support.oracle import assert_equal, litert_run, tflite_micro_run
from support.refusals import assert_tflite_refused
from support.tflite_builder import Array, Network

RANDOM = np.random.default_rng(20)
IMAGE = RANDOM.normal(size=(1, 5, 5, 3)).astype(np.float32)


@pytest.mark.parametrize("stored", ["float16", "int8", "int8 with a scale for each channel"])
def test_stored_weights_become_float32_constants(stored: str) -> None:
    net = Network()
    scales = [0.01, 0.02, 0.03, 0.04] if "channel" in stored else [0.013]
    if stored == "float16":
        weights = net.constant(RANDOM.normal(size=(4, 3, 3, 3)).astype(np.float16))
        bias = net.constant(np.array([6e-8, -0.1, 7.5, 65504], np.float16))
    else:
        elements = RANDOM.integers(-127, 128, (4, 3, 3, 3), dtype=np.int8)
        weights = net.tensor(elements.shape, "int8", data=elements, scales=scales, zero_points=[0] * len(scales))
        bias = net.constant(np.array([1, 2, -3, 4], np.int8), 0.5, 1)
    x = net.input((1, 5, 5, 3))
    options = {"Padding": 1, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    inputs = [x, net.dequantize(weights), net.dequantize(bias)]
    net.operator("CONV_2D", inputs, net.activation((1, 3, 3, 4)), "Conv2DOptions", **options)
    model = net.build()
    assert [node.operator.name for node in parse_tflite(model, "net", "net").nodes] == ["CONV_2D"]
    (got,), (expected,) = run_on_host(compile_bytes(model), [IMAGE]), litert_run(model, [IMAGE])
    assert_equal(got, expected, stored)


def test_dequantised_constants_are_exact() -> None:
    net = Network()
    elements = RANDOM.integers(-128, 128, (4, 50), dtype=np.int8)
    scales = RANDOM.uniform(1e-3, 1e-1, 4).astype(np.float32).tolist()
    source = net.tensor(elements.shape, "int8", data=elements, scales=scales, zero_points=[0] * 4)
    halves = RANDOM.integers(0, 0x7C00, (50,), dtype=np.uint16).view(np.float16)
    outputs = [net.dequantize(source), net.dequantize(net.constant(halves))]
    model = net.build(outputs)
    for got, expected in zip(run_on_host(compile_bytes(model), []), litert_run(model, []), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_computed_float16_is_refused() -> None:
    net = Network()
    net.dequantize(net.input((4,), dtype="float16"))
    assert_tflite_refused(
        net.build(), "type-unsupported", "operator 0 (DEQUANTIZE) writing 't1': tensor 0 't0'", "FLOAT16"
    )


def test_float16_of_another_size_is_refused() -> None:
    net = Network()
    source = net.constant(np.ones(4, np.float16))
    net.tensors[source].shape = [5]
    net.dequantize(source)
    assert_tflite_refused(
        net.build(), "tflite-malformed", "operator 0 (DEQUANTIZE) writing 't1': tensor 0 't0'", "8", "10"
    )


def packed(elements: Array) -> bytes:
    flat = np.append(elements.reshape(-1), np.zeros(elements.size % 2, np.int8)).view(np.uint8) & 15
    return (flat[0::2] | flat[1::2] << 4).astype(np.uint8).tobytes()


def int4_network(layer: str) -> Network:
    net = Network()
    x, scales = net.input((1, 5, 5, 3), 0.05, -3), [0.1, 0.2, 0.15]
    bias = np.array([100, -5, 7], np.int32)
    if layer == "CONV_2D":
        net.conv2d(x, RANDOM.integers(-7, 8, (3, 3, 3, 3), dtype=np.int8), bias, weight_scales=scales, scale=0.2)
    elif layer == "DEPTHWISE_CONV_2D":
        net.depthwise_conv2d(x, RANDOM.integers(-7, 8, (1, 3, 3, 3), dtype=np.int8), bias, weight_scales=scales,
                             scale=0.1)  # fmt: skip
    else:
        net.fully_connected(x, RANDOM.integers(-7, 8, (3, 75), dtype=np.int8), bias, weight_scales=[0.1], scale=0.2)
    weights = net.tensors[1]
    weights.content = packed(np.frombuffer(weights.content, np.int8))
    weights.type = TensorType.INT4
    return net


@pytest.mark.parametrize("layer", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_weights_of_four_bits(layer: str) -> None:
    model = int4_network(layer).build()
    image = RANDOM.integers(-128, 128, (1, 5, 5, 3), dtype=np.int8)
    (got,) = run_on_host(compile_bytes(model), [image])
    for run in (tflite_micro_run, litert_run):
        assert_equal(got, run(model, [image])[0], run.__name__)
    assert len(np.unique(got)) > 2


def test_weights_of_four_bits_of_another_size_are_refused() -> None:
    net = int4_network("CONV_2D")
    net.tensors[1].content = bytes(81)
    assert_tflite_refused(
        net.build(), "tflite-malformed", "operator 0 (CONV_2D) writing 't3': tensor 1 't1'", "81", "41"
    )


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_matrices_of_int16_and_int8(transposed: bool, constant: bool) -> None:
    net = Network()
    matrix = RANDOM.integers(-128, 128, (2, 9, 4) if transposed else (2, 4, 9), dtype=np.int8)
    values = [RANDOM.integers(-32768, 32768, (2, 3, 4)).astype(np.int16)]
    x = net.input((2, 3, 4), 0.001, dtype="int16")
    if constant:
        y = net.constant(matrix, 0.02)
    else:
        y = net.input(matrix.shape, 0.02)
        values.append(matrix)
    output = net.activation((2, 3, 9), 0.01, dtype="int16")
    net.operator("BATCH_MATMUL", [x, y], output, "BatchMatMulOptions", AdjY=transposed)
    model = net.build()
    graph = parse_tflite(model, "net", "net")
    (expected,) = litert_run(model, values)
    named = dict(zip(graph.inputs, values, strict=True))
    assert_equal(evaluate(graph, named)[graph.outputs[0]], expected, "numpy")
    assert_equal(run_on_host(compile_bytes(model), values)[0], expected, "C")
    assert len(np.unique(expected)) > 20


def test_matrix_of_int8_with_a_zero_point_over_int16_is_refused() -> None:
    net = Network()
    x, y = net.input((3, 4), 0.001, dtype="int16"), net.input((4, 9), 0.02, 5)
    net.operator("BATCH_MATMUL", [x, y], net.activation((3, 9), 0.01, dtype="int16"), "BatchMatMulOptions")
    assert_tflite_refused(net.build(), "operator-invalid", "BATCH_MATMUL 't2'", "'t1' int8[4, 9]", "zero point")
