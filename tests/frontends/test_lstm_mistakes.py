"""UNIDIRECTIONAL_SEQUENCE_LSTM in forms that are not supported, and with tensors that do not fit: exit code 4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.frontends.tflite import parse_tflite
from support.lstm_networks import add_lstm
from support.refusals import without_advice
from support.tflite_builder import Network
from support.tflite_writer import TensorSpec

INPUT_WEIGHTS, RECURRENT_TO_INPUT, PEEPHOLE, BIAS, PROJECTION, HIDDEN, CELL, NORMALISATION = 1, 5, 9, 12, 16, 18, 19, 20
PLACE = "operator 0 (UNIDIRECTIONAL_SEQUENCE_LSTM) writing 'y': "
RULE = "UNIDIRECTIONAL_SEQUENCE_LSTM 'y': "


def layer(dtype: str) -> Network:
    """A layer of 3 units over 'x' [2, 5, 4]; inputs of the operator are named by their position."""
    network = Network()
    source = network.input((2, 5, 4), None if dtype == "float32" else 0.02, dtype=dtype)
    add_lstm(network, np.random.default_rng(3), source, 3, dtype, zero_point=-5)
    for at, index in enumerate(network.operators[0].inputs):
        if index >= 0:
            network.tensors[index].name = f"in{at}"
    network.tensors[network.operators[0].outputs[0]].name = "y"
    return network


def at(network: Network, position: int) -> TensorSpec:
    return network.tensors[network.operators[0].inputs[position]]


def more(position: int) -> Callable[[Network], None]:
    """Give the operator an input that the plain form has not."""

    def edit(network: Network) -> None:
        network.operators[0].inputs[position] = network.constant(np.ones(3, np.float32))

    return edit


def less(*positions: int) -> Callable[[Network], None]:
    def edit(network: Network) -> None:
        for position in positions:
            network.operators[0].inputs[position] = -1

    return edit


def options(**values: Any) -> Callable[[Network], None]:
    return lambda network: network.operators[0].options.update(values)


def tensor(position: int, **values: Any) -> Callable[[Network], None]:
    def edit(network: Network) -> None:
        for name, value in values.items():
            setattr(at(network, position), name, value)

    return edit


def replaced(position: int, data: np.ndarray[Any, Any], scale: float | None = None) -> Callable[[Network], None]:
    """Another constant in the place of one."""

    def edit(network: Network) -> None:
        index = network.operators[0].inputs[position] = network.constant(data, scale)
        network.tensors[index].name = "other"

    return edit


def both(*edits: Callable[[Network], None]) -> Callable[[Network], None]:
    def edit(network: Network) -> None:
        for one in edits:
            one(network)

    return edit


def output(**values: Any) -> Callable[[Network], None]:
    def edit(network: Network) -> None:
        for name, value in values.items():
            setattr(network.tensors[network.operators[0].outputs[0]], name, value)

    return edit


PLAIN = ": not supported; use a plain LSTM layer, as Keras has it"
INT64_LIMIT = np.array([1 << 47, 0, 0])

MISTAKES: dict[str, tuple[str, Callable[[Network], None], str]] = {
    "peephole": ("float32", more(PEEPHOLE + 1), f"{PLACE}has peephole weights ('t16' float32[3]){PLAIN}"),
    "projection": ("float32", more(PROJECTION), f"{PLACE}has a projection ('t16' float32[3]){PLAIN}"),
    "bias of a projection": ("float32", more(PROJECTION + 1), f"{PLACE}has a projection ('t16' float32[3]){PLAIN}"),
    "layer normalisation": (
        "float32",
        more(NORMALISATION + 3),
        f"{PLACE}has layer normalisation ('t16' float32[3]){PLAIN}",
    ),
    "coupled gates": (
        "int8",
        less(INPUT_WEIGHTS, RECURRENT_TO_INPUT, BIAS),
        (
            f"{PLACE}has no input gate (input 1 is absent): coupled input and forget gates are not supported; use a "
            "plain LSTM layer, as Keras has it"
        ),
    ),
    "no bias": ("int8", less(BIAS + 1), f"{PLACE}input 13 is absent"),
    "another activation": (
        "int8",
        options(FusedActivationFunction=1),
        f"{PLACE}activation RELU of the cell is not supported; supported is TANH",
    ),
    "diagonal weights": (
        "float32",
        options(DiagonalRecurrentTensors=True),
        f"{PLACE}diagonal recurrent weights are not supported; write them as a matrix",
    ),
    "hybrid": (
        "float32",
        both(*(replaced(position, np.ones((3, 4), np.int8), 0.1) for position in range(1, 5))),
        f"{PLACE}hybrid model ('other' int8[3, 4] over float32) is not supported; quantise the activations too",
    ),
    "uint8": (
        "int8",
        tensor(0, type=3),
        (
            f"{PLACE}type uint8 of 'in0': legacy uint8 quantisation is not supported; convert the model again with "
            "full integer quantisation, which is int8"
        ),
    ),
    "weights that come in": (
        "float32",
        lambda network: network.inputs.append(weights_without_content(network)),
        f"{PLACE}weights and bias must be constant, 'in2' float32[3, 4] is not",
    ),
    "one float matrix": (
        "int8",
        replaced(4, np.ones((3, 4), np.float32)),
        f"{RULE}the weights 'other' float32[3, 4] must be int8 over int8",
    ),
    "weights with a zero point": (
        "int8",
        tensor(3, zero_points=[1]),
        f"{RULE}the weights 'in3' int8[3, 4] have a zero point that is not 0",
    ),
    "a scale for each unit": (
        "int8",
        tensor(3, scales=[0.1, 0.2, 0.3], zero_points=[0, 0, 0]),
        f"{RULE}'in3' int8[3, 4] must have one scale, has 3",
    ),
    "weights without a scale": (
        "int16",
        tensor(8, scales=[], zero_points=[]),
        f"{RULE}'in8' int8[3, 3] has no scale and zero point",
    ),
    "weights of other features": (
        "float32",
        replaced(2, np.ones((3, 5), np.float32)),
        f"{RULE}'other' float32[3, 5] should have the shape [3, 4]",
    ),
    "recurrent weights of other units": (
        "float32",
        replaced(6, np.ones((4, 3), np.float32)),
        f"{RULE}'other' float32[4, 3] should have the shape [3, 3]",
    ),
    "a bias of other units": (
        "float32",
        replaced(12, np.ones(4, np.float32)),
        f"{RULE}'other' float32[4] should have the shape [3]",
    ),
    "a bias of 64 bits over int8": (
        "int8",
        replaced(12, np.ones(3, np.int64), 0.1),
        f"{RULE}the bias 'other' int64[3] must be int32 over int8",
    ),
    "a bias of 32 bits over int16": (
        "int16",
        replaced(15, np.ones(3, np.int32), 0.1),
        f"{RULE}the bias 'other' int32[3] must be int64 over int16",
    ),
    "a bias beyond 48 bits": (
        "int16",
        replaced(12, INT64_LIMIT, 0.1),
        f"{RULE}sums with the bias 'other' int64[3] may not fit 48 bits",
    ),
    "scales beyond 64 bits": (
        "int16",
        tensor(0, scales=[100.0]),
        f"{RULE}cannot rescale sums of 64 bits by 2**7 or more",
    ),
    "cells of 8 bits": ("int8", tensor(CELL, type=9), f"{RULE}the cell state 'in19' int8[2, 3] must be int16"),
    "cells of another scale": (
        "int8",
        tensor(CELL, scales=[0.001]),
        f"{RULE}the scale 0.001 of the cell state 'in19' must be a power of two",
    ),
    "cells of a huge scale": (
        "int8",
        tensor(CELL, scales=[8.0]),
        f"{RULE}the scale 8 of the cell state 'in19' is beyond 2**-42 to 4",
    ),
    "cells with a zero point": (
        "int8",
        tensor(CELL, zero_points=[1]),
        f"{RULE}'in19' int16[2, 3] must have the zero point 0, as int16 always has",
    ),
    "cells of other units": (
        "int8",
        tensor(CELL, shape=[2, 4]),
        f"{RULE}'in18' int8[2, 3] has 6 elements, 'in19' int16[2, 4] has 8",
    ),
    "a hidden row of one dimension": (
        "int8",
        tensor(HIDDEN, shape=[6]),
        f"{RULE}'in18' int8[6] must have 2 dimensions",
    ),
    "hidden rows of another batch": (
        "int8",
        tensor(HIDDEN, shape=[5, 3]),
        f"{RULE}'in18' int8[5, 3] should have the shape [2, 3]",
    ),
    "hidden rows of another type": (
        "int8",
        tensor(HIDDEN, type=7),
        f"{RULE}mixes 'in0' int8[2, 5, 4] and 'in18' int16[2, 3]",
    ),
    "hidden rows of another scale": (
        "int8",
        tensor(HIDDEN, scales=[0.5]),
        f"{RULE}'in18' int8[2, 3] and 'y' int8[2, 5, 3] must have the same scale and zero point",
    ),
    "hidden rows that are constant": (
        "int8",
        tensor(HIDDEN, is_variable=False),
        f"{PLACE}tensor 13 'in18' is kept from run to run and has to be a variable",
    ),
    "time first, but not in the states": (
        "int8",
        options(TimeMajor=True),
        f"{RULE}'in18' int8[2, 3] should have the shape [5, 3]",
    ),
    "an output of other steps": (
        "int8",
        output(shape=[2, 4, 3]),
        f"{RULE}'y' int8[2, 4, 3] should have the shape [2, 5, 3]",
    ),
    "a row without steps": ("float32", tensor(0, shape=[2, 20]), f"{RULE}'in0' float32[2, 20] must have 3 dimensions"),
}


def weights_without_content(network: Network) -> int:
    at(network, 2).content = b""
    return network.operators[0].inputs[2]


@pytest.mark.parametrize(("dtype", "edit", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_one_mistake(dtype: str, edit: Callable[[Network], None], expected: str) -> None:
    network = layer(dtype)
    parse_tflite(network.build(), "net", "net.tflite")
    network = layer(dtype)
    edit(network)
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(network.build(), "net", "net.tflite")
    assert without_advice(str(caught.value)) == f"net.tflite: {expected}"
