"""Scales and zero points of float tensors, which converters leave behind, have no effect."""

import numpy as np
import pytest

from mlfbuild.core.errors import UnsupportedModelError
from support.host_c import run_on_host
from support.native import compile_bytes
from support.oracle import tflite_micro_run
from support.tflite_builder import Network


@pytest.mark.parametrize("zero_points", [[5], [5, 6, 7]], ids=["one", "a channel"])
def test_padding_of_float32_is_zero(zero_points: list[int]) -> None:
    network = Network()
    padded = network.pad(network.input((1, 2, 2, 1)), [(0, 0), (1, 0), (0, 1), (0, 2)])
    network.tensors[padded].scales = [0.5] * len(zero_points)
    network.tensors[padded].zero_points, network.tensors[padded].axis = zero_points, 3
    model, value = network.build([network.unary("ABS", padded)]), np.full((1, 2, 2, 1), 9, np.float32)
    (expected,) = tflite_micro_run(model, [value])
    (got,) = run_on_host(compile_bytes(model), [value])
    np.testing.assert_array_equal(got, expected)
    assert got[0, 0].max() == 0


def test_int8_padding_requires_equal_zero_points() -> None:
    network = Network()
    source = network.tensor((1, 4, 4, 2), "int8")
    network.inputs.append(source)
    wide = network.tensor((4, 3, 3, 2), "int8", scales=[0.5, 0.5], zero_points=[1, 2], axis=3)
    attributes = network.integers([2, 2]), network.integers([(1, 1), (1, 1)])
    network.operator("SPACE_TO_BATCH_ND", [source, *attributes], wide, "SpaceToBatchNDOptions")
    with pytest.raises(
        UnsupportedModelError, match=r"SPACE_TO_BATCH_ND 't1': 't1' int8\[4, 3, 3, 2\] must have one scale, has 2"
    ):
        compile_bytes(network.build())
