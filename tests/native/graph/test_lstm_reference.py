"""Cases of UNIDIRECTIONAL_SEQUENCE_LSTM that random networks do not cover, and its rules."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import Array, DType, Operands, Quantization, Tensor
from mlfbuild.native.graph.nodes import evaluate_in_turn
from mlfbuild.native.graph.ops import UnidirectionalSequenceLstm
from support.lstm_networks import add_lstm
from support.oracle import tflite_micro_run
from support.tflite_builder import Network


def layer(dtype: str = "int8", **options: Any) -> Network:
    """Return a layer of 3 units over [2, 5, 4] with short names."""
    network, random = Network(), np.random.default_rng(3)
    quantized = dtype != "float32"
    source = network.input((2, 5, 4), 0.02 if quantized else None, 7 if dtype == "int8" else 0, dtype=dtype)
    add_lstm(network, random, source, 3, dtype, zero_point=-5 if dtype == "int8" else None, **options)
    return network


def run_once(network: Network, value: Array) -> Array:
    graph = parse_tflite(network.build(), "network", "network.tflite")
    (values,) = evaluate_in_turn(graph, [{graph.inputs[0]: value}])
    return values[graph.outputs[0]]


@pytest.mark.parametrize("power", [-24, -15, -12, -9, -4, 0])
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_cells_at_both_ends_of_their_scale(dtype: str, power: int) -> None:
    """The scale of cells determines the shift of the argument of tanh."""
    limits = np.iinfo(dtype)
    value = np.random.default_rng(1).integers(limits.min, limits.max + 1, (2, 5, 4)).astype(dtype)
    network = layer(dtype, power=power)
    (expected,) = tflite_micro_run(network.build(), [value])
    np.testing.assert_array_equal(run_once(network, value), expected)


def test_files_without_the_inputs_of_layer_normalisation() -> None:
    """Older converters write 20 inputs; TensorFlow Lite Micro requires 24."""
    network = layer()
    value = np.random.default_rng(0).integers(-128, 128, (2, 5, 4)).astype(np.int8)
    (expected,) = tflite_micro_run(network.build(), [value])
    del network.operators[0].inputs[20:]
    np.testing.assert_array_equal(run_once(network, value), expected)


def tensors() -> tuple[list[Tensor | None], list[Tensor]]:
    """Return the tensors of an int8 layer of 3 units over [1, 2, 4]."""
    step, cells = Quantization((0.02,), (0,)), Quantization((2.0**-11,), (0,))

    def tensor(name: str, *shape: int, dtype: DType = DType.INT8, constant: bool = False) -> Tensor:
        data = np.zeros(shape, dtype.numpy) if constant else None
        return Tensor(name, shape, dtype, cells if dtype is DType.INT16 else step, data)

    inputs: list[Tensor | None] = [tensor("x", 1, 2, 4)]
    inputs += [tensor(f"w{gate}", 3, 4, constant=True) for gate in range(4)]
    inputs += [tensor(f"r{gate}", 3, 3, constant=True) for gate in range(4)]
    inputs += [tensor(f"b{gate}", 3, dtype=DType.INT32, constant=True) for gate in range(4)]
    inputs += [tensor("h", 1, 3), tensor("c", 1, 3, dtype=DType.INT16)]
    return inputs, [tensor("y", 1, 2, 3), tensor("h2", 1, 3), tensor("c2", 1, 3, dtype=DType.INT16)]


Edit = Callable[[list[Tensor | None], list[Tensor]], object]


def changed(tensors: list[Tensor | None] | list[Tensor], at: int, **values: Any) -> None:
    tensor = tensors[at]
    assert tensor is not None
    tensors[at] = replace(tensor, **values)


BROKEN: dict[str, tuple[Edit, str]] = {
    "too few inputs": (lambda x, _: x.pop(), "has 14 inputs and 3 outputs, takes 15 and writes 3"),
    "too few outputs": (lambda _, y: y.pop(), "has 15 inputs and 2 outputs, takes 15 and writes 3"),
    "an absent input": (lambda x, _: x.__setitem__(4, None), "input 4 is absent"),
    "weights computed": (lambda x, _: changed(x, 6, data=None), "the weights 'r1' int8[3, 3] are not constant"),
    "a bias computed": (lambda x, _: changed(x, 12, data=None), "the bias 'b3' int32[3] is not constant"),
    "hidden rows left in another shape": (
        lambda _, y: changed(y, 1, shape=(3, 1)), "'h2' int8[3, 1] should have the shape [1, 3]",
    ),
    "cells left in another shape": (
        lambda _, y: changed(y, 2, shape=(3,)), "'c2' int16[3] should have the shape [1, 3]",
    ),
    "hidden rows left in another scale": (
        lambda _, y: changed(y, 1, quantization=Quantization((0.5,), (0,))),
        "'h' int8[1, 3] and 'h2' int8[1, 3] must have the same scale and zero point",
    ),
    "cells left in another scale": (
        lambda _, y: changed(y, 2, quantization=Quantization((0.5,), (0,))),
        "'c' int16[1, 3] and 'c2' int16[1, 3] must have the same scale and zero point",
    ),
    "cells left as another type": (
        lambda _, y: changed(y, 2, dtype=DType.INT8), "'c2' int8[1, 3]: the type must be int16",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "reason"), BROKEN.values(), ids=BROKEN)
def test_rules_that_no_file_can_break(edit: Edit, reason: str) -> None:
    inputs, outputs = tensors()
    assert UnidirectionalSequenceLstm().check(Operands(inputs), outputs) is None
    edit(inputs, outputs)
    assert UnidirectionalSequenceLstm().check(Operands(inputs), outputs) == reason
