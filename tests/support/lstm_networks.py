"""Layers of UNIDIRECTIONAL_SEQUENCE_LSTM, drawn or with random weights."""

from collections.abc import Callable
from typing import Any

import numpy as np
from tflite.ActivationFunctionType import ActivationFunctionType

from support.drawing import Case, Drawing
from support.tflite_builder import Network

BIAS = {"int8": "int32", "int16": "int64"}


def draw_lstm(d: Drawing) -> None:
    """Add a layer over a drawn sequence with one or more steps and batches."""
    units, time_major = d.size(1, 9), d.choice(True, False)
    source = d.input((d.size(1, 3), d.size(1, 4), d.size(1, 9)), **d.affine(0.004, 0.05))
    clip = d.choice(0.0, 0.0, 0.3, 2.0, 1e6)
    add_lstm(d.network, d.random, source, units, d.dtype, time_major=time_major, clip=clip, power=d.size(-16, -8))


def add_lstm(
    network: Network, random: np.random.Generator, source: int, units: int, dtype: str, *,
    time_major: bool = False, clip: float = 0.0, power: int = -11, zero_point: int | None = None,
) -> int:  # fmt: skip
    """Add a layer with random weights over ``source`` and return its output; the scale of cells is 2**``power``."""
    shape = network.tensors[source].shape
    quantized = dtype != "float32"
    batch = shape[1 if time_major else 0]
    hidden = _hidden(random, dtype, zero_point)
    weights = [_weights(network, random, (units, shape[2]), quantized=quantized) for _ in range(4)]
    recurrent = [_weights(network, random, (units, units), quantized=quantized) for _ in range(4)]
    biases = [_bias(network, random, units, dtype) for _ in range(4)]
    cells: dict[str, Any] = {"scale": 2.0**power, "dtype": "int16"} if quantized else {}
    states = [network.activation((batch, units), **options) for options in (hidden, cells)]
    for state in states:
        network.tensors[state].is_variable = True
    output = network.activation((*shape[:2], units), **hidden)
    inputs = [source, *weights, *recurrent, *[-1] * 3, *biases, *[-1] * 2, *states, *[-1] * 4]
    return network.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, output, "UnidirectionalSequenceLSTMOptions",
        FusedActivationFunction=ActivationFunctionType.TANH, CellClip=clip, TimeMajor=time_major,
    )  # fmt: skip


def _hidden(random: np.random.Generator, dtype: str, zero_point: int | None) -> dict[str, Any]:
    """Return a scale of hidden values, which are within -1 and 1: either they use the whole type, or are clamped."""
    if dtype == "float32":
        return {}
    scale = float(np.float32(random.choice([1.0, 0.4]) * 2.0 / (1 << (8 if dtype == "int8" else 16))))
    if dtype == "int16":
        return {"scale": scale, "dtype": "int16"}
    return {"scale": scale, "zero_point": int(random.integers(-20, 20)) if zero_point is None else zero_point}


def _weights(network: Network, random: np.random.Generator, shape: tuple[int, int], *, quantized: bool) -> int:
    if not quantized:
        return network.constant(random.normal(0, 0.5, shape).astype(np.float32))
    return network.constant(
        random.integers(-127, 128, shape, dtype=np.int8), float(np.float32(random.uniform(0.002, 0.02)))
    )


def _bias(network: Network, random: np.random.Generator, units: int, dtype: str) -> int:
    if dtype == "float32":
        return network.constant(random.normal(0, 1, units).astype(np.float32))
    limit = 1 << (14 if dtype == "int8" else 22)
    return network.constant(random.integers(-limit, limit, units).astype(BIAS[dtype]), 1e-4)


def groups_of_four(seed: int) -> Case:
    """Return an int8 layer of three steps whose features and units are multiples of four."""
    network, random = Network(), np.random.default_rng(seed)
    features, units = (4 * int(groups) for groups in random.integers(1, 6, 2))
    source = network.input((1, 3, features), 0.02, 3)
    value = random.integers(-128, 128, (1, 3, features), dtype=np.int8)
    return Case(network.build([add_lstm(network, random, source, units, "int8")]), (value,))


KINDS: dict[str, Callable[[int], Case]] = {"UNIDIRECTIONAL_SEQUENCE_LSTM": groups_of_four}
