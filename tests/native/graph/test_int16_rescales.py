"""All 65536 int16 values through functions that only rescale, against TensorFlow Lite Micro.

Whether a ratio of scales is computed in float32 or in double changes one value in ten thousand.
"""

import numpy as np
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate
from support.oracle import tflite_micro_run
from support.tflite_builder import Network

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
