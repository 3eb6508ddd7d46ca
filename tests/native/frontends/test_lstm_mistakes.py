"""Unsupported forms of UNIDIRECTIONAL_SEQUENCE_LSTM, and tensors that do not fit: exit code 4."""

from typing import Any

import numpy as np
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from support.lstm_networks import add_lstm
from support.refusals import Refusal, assert_tflite_refused, invalid
from support.tflite_builder import Network
from support.tflite_edits import Edit, computed, edit_input, edit_options, edit_output, every

INPUT_WEIGHTS, RECURRENT_TO_INPUT, PEEPHOLE, BIAS, PROJECTION, HIDDEN, CELL, NORMALISATION = 1, 5, 9, 12, 16, 18, 19, 20
PLACE = "operator 0 (UNIDIRECTIONAL_SEQUENCE_LSTM) writing 'y'"
RULE = "UNIDIRECTIONAL_SEQUENCE_LSTM 'y'"


def layer(dtype: str) -> Network:
    """Return a layer of 3 units over 'x' [2, 5, 4]; inputs of the operator are named by their position."""
    network = Network()
    source = network.input((2, 5, 4), None if dtype == "float32" else 0.02, dtype=dtype)
    add_lstm(network, np.random.default_rng(3), source, 3, dtype, zero_point=-5)
    for at, index in enumerate(network.operators[0].inputs):
        if index >= 0:
            network.tensors[index].name = f"in{at}"
    network.tensors[network.operators[0].outputs[0]].name = "y"
    return network


def more(position: int) -> Edit:
    """Return an edit that adds an input that the plain form does not have."""

    def edit(network: Network) -> None:
        network.operators[0].inputs[position] = network.constant(np.ones(3, np.float32))

    return edit


def less(*positions: int) -> Edit:
    def edit(network: Network) -> None:
        for position in positions:
            network.operators[0].inputs[position] = -1

    return edit


def replaced(position: int, data: np.ndarray[Any, Any], scale: float | None = None) -> Edit:
    """Return an edit that replaces a constant."""

    def edit(network: Network) -> None:
        index = network.operators[0].inputs[position] = network.constant(data, scale)
        network.tensors[index].name = "other"

    return edit


ADDED = ("operator-variant-unsupported", PLACE, "('t16' float32[3])")
INT64_LIMIT = np.array([1 << 47, 0, 0])

MISTAKES: dict[str, tuple[str, Edit, Refusal]] = {
    "peephole": ("float32", more(PEEPHOLE + 1), ADDED),
    "projection": ("float32", more(PROJECTION), ADDED),
    "bias of a projection": ("float32", more(PROJECTION + 1), ADDED),
    "layer normalisation": ("float32", more(NORMALISATION + 3), ADDED),
    "coupled gates": ("int8", less(INPUT_WEIGHTS, RECURRENT_TO_INPUT, BIAS),
     ("operator-variant-unsupported", PLACE, "(input 1 is absent)")),
    "no bias": ("int8", less(BIAS + 1), invalid(PLACE, "13")),
    "another activation": ("int8", edit_options(FusedActivationFunction=1),
     ("operator-variant-unsupported", PLACE, "RELU")),
    "diagonal weights": ("float32", edit_options(DiagonalRecurrentTensors=True),
     ("operator-variant-unsupported", PLACE)),
    "hybrid": ("float32", every(*(replaced(position, np.ones((3, 4), np.int8), 0.1) for position in range(1, 5))),
     ("quantization-unsupported", PLACE, "('other' int8[3, 4] over float32")),
    "uint8": ("int8", edit_input(0, type=3), ("quantization-unsupported", PLACE, "uint8")),
    "weights that come in": ("float32", lambda network: computed(network.operators[0].inputs[2])(network),
     ("input-not-constant", PLACE, "'in2' float32[3, 4]")),
    "one float matrix": ("int8", replaced(4, np.ones((3, 4), np.float32)), invalid(RULE, "'other' float32[3, 4]", "8")),
    "weights with a zero point": ("int8", edit_input(3, zero_points=[1]), invalid(RULE, "'in3' int8[3, 4]", "0")),
    "a scale for each unit": ("int8", edit_input(3, scales=[0.1, 0.2, 0.3], zero_points=[0, 0, 0]),
     invalid(RULE, "'in3' int8[3, 4]")),
    "weights without a scale": ("int16", edit_input(8, scales=[], zero_points=[]), invalid(RULE, "'in8' int8[3, 3]")),
    "weights of other features": ("float32", replaced(2, np.ones((3, 5), np.float32)),
     invalid(RULE, "'other' float32[3, 5]", "[3, 4]")),
    "recurrent weights of other units": ("float32", replaced(6, np.ones((4, 3), np.float32)),
     invalid(RULE, "'other' float32[4, 3]", "[3, 3]")),
    "a bias of other units": ("float32", replaced(12, np.ones(4, np.float32)),
     invalid(RULE, "'other' float32[4]", "[3]")),
    "a bias of 64 bits over int8": ("int8", replaced(12, np.ones(3, np.int64), 0.1),
     invalid(RULE, "'other' int64[3]", "32")),
    "a bias of 32 bits over int16": ("int16", replaced(15, np.ones(3, np.int32), 0.1),
     invalid(RULE, "'other' int32[3]", "64")),
    "a bias beyond 48 bits": ("int16", replaced(12, INT64_LIMIT, 0.1), invalid(RULE, "'other' int64[3]", "48")),
    "scales beyond 64 bits": ("int16", edit_input(0, scales=[100.0]), invalid(RULE, "64", "2")),
    "cells of 8 bits": ("int8", edit_input(CELL, type=9), invalid(RULE, "'in19' int8[2, 3]", "16")),
    "cells of another scale": ("int8", edit_input(CELL, scales=[0.001]), invalid(RULE, "0.001", "'in19'")),
    "cells of a huge scale": ("int8", edit_input(CELL, scales=[8.0]), invalid(RULE, "8", "'in19'")),
    "cells with a zero point": ("int8", edit_input(CELL, zero_points=[1]), invalid(RULE, "'in19' int16[2, 3]", "0")),
    "cells of other units": ("int8", edit_input(CELL, shape=[2, 4]), invalid(RULE, "'in18' int8[2, 3]", "6")),
    "a hidden row of one dimension": ("int8", edit_input(HIDDEN, shape=[6]), invalid(RULE, "'in18' int8[6]", "2")),
    "hidden rows of another batch": ("int8", edit_input(HIDDEN, shape=[5, 3]),
     invalid(RULE, "'in18' int8[5, 3]", "[2, 3]")),
    "hidden rows of another type": ("int8", edit_input(HIDDEN, type=7),
     invalid(RULE, "'in0' int8[2, 5, 4]", "'in18' int16[2, 3]")),
    "hidden rows of another scale": ("int8", edit_input(HIDDEN, scales=[0.5]),
     invalid(RULE, "'in18' int8[2, 3]", "'y' int8[2, 5, 3]")),
    "hidden rows that are constant": ("int8", edit_input(HIDDEN, is_variable=False),
     ("variable-misused", "operator 0 (UNIDIRECTIONAL_SEQUENCE_LSTM) writing 'y': tensor 13 'in18'")),
    "time first, but not in the states": ("int8", edit_options(TimeMajor=True),
     invalid(RULE, "'in18' int8[2, 3]", "[5, 3]")),
    "an output of other steps": ("int8", edit_output(shape=[2, 4, 3]), invalid(RULE, "'y' int8[2, 4, 3]", "[2, 5, 3]")),
    "a row without steps": ("float32", edit_input(0, shape=[2, 20]), invalid(RULE, "'in0' float32[2, 20]")),
}  # fmt: skip


@pytest.mark.parametrize(("dtype", "edit", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_one_mistake(dtype: str, edit: Edit, expected: Refusal) -> None:
    network = layer(dtype)
    parse_tflite(network.build(), "net", "net.tflite")
    network = layer(dtype)
    edit(network)
    assert_tflite_refused(network.build(), *expected)
