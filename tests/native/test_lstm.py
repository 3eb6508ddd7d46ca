"""The C of UNIDIRECTIONAL_SEQUENCE_LSTM: its states, and its products on boards."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support.board_cases import Job, wrong_networks
from support.examples import first_on_push
from support.host_c import run_cases_on_host
from support.lstm_networks import add_lstm
from support.native import compile_bytes, generated
from support.oracle import assert_equal, tflite_micro_cases, tflite_micro_run
from support.tflite_builder import Network

Array = npt.NDArray[Any]

TYPES = ("int8", "int16", "float32")


def sequence(dtype: str, features: int, *layers: int, time_major: bool = False) -> bytes:
    """Return layers with these numbers of units for 2 sequences of 3 rows."""
    network, random = Network(), np.random.default_rng(4)
    shape = (3, 2, features) if time_major else (2, 3, features)
    scale = {"int8": 0.01, "int16": 0.01 / 256, "float32": None}[dtype]
    output = network.input(shape, scale, 3 if dtype == "int8" else 0, dtype=dtype)
    for units in layers:
        output = add_lstm(network, random, output, units, dtype, time_major=time_major)
    return network.build([output])


def values(dtype: str, *shape: int) -> Array:
    random = np.random.default_rng(5)
    if dtype == "float32":
        return random.normal(0, 1, shape).astype(np.float32)
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max + 1, shape).astype(dtype)


def test_states_are_updated_in_place() -> None:
    library = compile_bytes(sequence("int8", 4, 5), cpu="cortex-m3")  # without scratch memory
    text = generated(library).split("mlf_net_run", 1)[1]
    assert "memcpy(&state" not in text
    assert "arena" not in text
    assert text.count("&state[0]") == 2  # hidden rows, read and written
    assert library.modules[0].state_size == 16 + 24


def test_stacked_layers() -> None:
    model, runs = sequence("int8", 4, 5, 3, 8), [[values("int8", 2, 3, 4)] for _ in range(3)]
    library = compile_bytes(model)
    for got, right in zip(run_cases_on_host(library, runs), tflite_micro_cases(model, runs), strict=True):
        assert_equal(got[0], right[0], generated(library))


def test_weights_that_packed_words_cannot_hold() -> None:
    """Pairs of -128 and a negative weight need 17 bits, and the portable kernel."""
    network = Network()
    add_lstm(network, np.random.default_rng(4), network.input((1, 2, 4), 0.01, 3, dtype="int8"), 5, "int8")
    for at, weight in ((1, -1), (2, -128)):
        network.tensors[network.operators[0].inputs[at]].content = np.full(20, weight, np.int8).tobytes()
    model, runs = network.build(), [[values("int8", 1, 2, 4)]]
    library = compile_bytes(model)
    assert "mlf_lstm_int8(" in generated(library)
    assert_equal(run_cases_on_host(library, runs)[0][0], tflite_micro_cases(model, runs)[0][0], generated(library))


SIZES = [(1, 1), (3, 5), (4, 8), (19, 16), (33, 21), (36, 12)]
"""(features, units) around the rounds of four and eight bytes, and of vectors of 4, 8 and 16 elements."""


def jobs(cpu: str) -> list[Job]:
    found: list[Job] = []
    for dtype in TYPES:
        for features, units in (*SIZES, *([(1100, 3)] if dtype == "int16" else [])):
            model = sequence(dtype, features, units, time_major=units % 2 == 1)
            inputs = [values(dtype, *((3, 2, features) if units % 2 == 1 else (2, 3, features)))]
            library = compile_bytes(model, f"lstm_{dtype}_{features}_{units}", cpu)
            found.append((library, inputs, tflite_micro_run(model, inputs)))
    return found


@pytest.mark.parametrize(
    ("cpu", "optimise"),
    first_on_push([("cortex-m55", "-O2"), ("cortex-m4", "-O2"), ("cortex-m55", "-O0"), ("cortex-m55", "-Og")]),
)
def test_layers_on_the_board(cpu: str, optimise: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    """Optimisation levels change the registers of the assembly, and some instructions support only half of them."""
    assert wrong_networks(jobs(cpu), cpu, tmp_path, tool, optimise=optimise) == []
