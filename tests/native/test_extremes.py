"""Valid networks of extreme sizes and numbers compile quickly and without a numpy warning."""

import numpy as np
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import evaluate
from support.host_c import run_on_host
from support.native import compile_bytes
from support.oracle import tflite_micro_run
from support.steps import calls
from support.tflite_builder import Network


@pytest.mark.parametrize("memory", ["smallest", "balanced"])
def test_very_tall_image_compiles_quickly(memory: str) -> None:
    """No search iterates over its rows."""
    net = Network()
    x = net.softmax(net.input((1, 1 << 23, 1, 2), 0.1))  # in the arena, so that a chain could write over it
    x = net.conv2d(x, np.ones((4, 1, 1, 2), np.int8), weight_scales=[0.1], scale=1)
    x = net.conv2d(x, np.ones((2, 1, 1, 4), np.int8), weight_scales=[0.1], scale=1)
    net.pool2d("MAX", x, (2, 1), stride=(2, 1))
    model = net.build()
    assert calls(lambda: compile_bytes(model, memory=memory)) < 1 << 20


@pytest.mark.parametrize("name", ["ADD", "MUL"])
def test_infinite_factors(name: str) -> None:
    """The firmware's arithmetic has the same result, NaN."""
    net = Network()
    weights, factors = np.array([[0.0, np.inf], [1, 1]], np.float32), np.array([np.inf, 0], np.float32)
    bias = np.array([-np.inf, 1], np.float32)
    y = net.fully_connected(net.input((1, 2)), weights, bias)
    net.binary(name, y, net.constant(factors), activation="NONE")
    assert "FULLY_CONNECTED" in str(compile_bytes(net.build()).modules[0].source_text)


@pytest.mark.parametrize(
    ("name", "expected"), [("REDUCE_MAX", [3, 3, np.inf, -np.inf]), ("REDUCE_MIN", [1, 1, -np.inf, np.inf])]
)
def test_extreme_elements_ignore_nan(name: str, expected: list[float]) -> None:
    """Rows that have a number are equal to TensorFlow Lite Micro; its result of a row of NaN is the greatest float."""
    rows = np.array([[np.nan, 1, 3], [3, np.nan, 1], [np.inf, np.nan, -np.inf], [np.nan] * 3], np.float32)
    net = Network()
    net.reduce(name, net.input(rows.shape), [1])
    model = net.build()
    graph = parse_tflite(model, "net", "net")
    (got,), (micro,) = run_on_host(compile_bytes(model), [rows]), tflite_micro_run(model, [rows])
    np.testing.assert_array_equal(evaluate(graph, {graph.inputs[0]: rows})[graph.outputs[0]], got)
    np.testing.assert_array_equal(got.ravel(), np.array(expected, np.float32))
    np.testing.assert_array_equal(micro.ravel()[:3], got.ravel()[:3])
    assert micro.ravel()[3] == np.copysign(np.finfo(np.float32).max, expected[3])
