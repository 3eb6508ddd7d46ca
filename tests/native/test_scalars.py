"""Tensors without dimensions, in PACK and UNPACK, equal TensorFlow Lite Micro and numpy."""

import numpy as np
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_on_host
from support.native import compile_bytes
from support.oracle import assert_equal, tflite_micro_run
from support.tflite_builder import Network


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_scalars_are_packed_and_unpacked(dtype: str) -> None:
    network = Network()
    affine = {"scale": 0.5, "zero_point": 3} if dtype == "int8" else {}
    first, second, row = network.input((), **affine), network.input((), **affine), network.input((3,), **affine)
    parts = network.many("UNPACK", [row], [network.like(row, ()) for _ in range(3)], "UnpackOptions", Num=3)
    sources = [parts[2], first, second, parts[0]]
    network.operator("PACK", sources, network.like(row, (4,)), "PackOptions", ValuesCount=4)
    model = network.build()
    inputs = [np.array(7, dtype), np.array(-9, dtype), np.array([1, 2, 3], dtype)]
    (expected,) = tflite_micro_run(model, inputs)
    np.testing.assert_array_equal(expected, [3, 7, -9, 1])
    (got,) = run_on_host(compile_bytes(model), inputs)
    assert_equal(got, expected, dtype)
    graph = parse_tflite(model, "net", "net.tflite")
    values = evaluate(graph, dict(zip(graph.inputs, inputs, strict=True)))
    assert_equal(values[graph.outputs[0]], expected, "the reference")
