"""MUL by gates and of one shape, int16 ADD, and QUANTIZE of int8 to int8, against TensorFlow Lite Micro."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support.board_cases import Job, wrong_networks
from support.host_c import run_many_on_host
from support.native import compile_bytes, generated
from support.oracle import tflite_micro_run
from support.tflite_builder import Network

Array = npt.NDArray[Any]
Affine = tuple[float, int]

STORED = np.arange(-128, 128).astype(np.int8)
COLUMN, GATES = np.repeat(STORED[:, None], 256, 1), STORED
_NUMBERS = itertools.count()
RANDOM = np.random.default_rng(0)
WIDE = [RANDOM.choice(np.array([-32768, -32767, -1, 0, 1, 32767]), (8, 500)), RANDOM.integers(-32768, 32768, (8, 500))]
WIDE = [np.concatenate([values, values[::-1]]).astype(np.int16) for values in WIDE]


def job(operator: str, inputs: Sequence[Array], affines: Sequence[Affine], activation: str = "NONE") -> Job:
    """Return the compiled operator, whose inputs and output have ``affines``, its inputs and TFLM's outputs."""
    network, dtype = Network(), inputs[0].dtype.name
    ports = [
        network.input(value.shape, *affine, dtype=dtype) for value, affine in zip(inputs, affines[:2], strict=True)
    ]
    scale, zero_point = affines[2]
    output = network.binary(operator, *ports, activation=activation, scale=scale, zero_point=zero_point, dtype=dtype)
    content = network.build(outputs=[output])
    name = f"net{next(_NUMBERS)}"
    return compile_bytes(content, name), tuple(inputs), tflite_micro_run(content, inputs)


BYTES = ((0.05, -3), (1 / 255, -128), (0.04, 5))
SCALED = {
    "gates": lambda: job("MUL", (COLUMN, GATES), BYTES),
    "gates before": lambda: job("MUL", (GATES, COLUMN), (BYTES[1], BYTES[0], BYTES[2])),
    "gates of several images": lambda: job("MUL", (COLUMN.reshape(4, 64, 256), GATES.reshape(1, 1, 256)), BYTES),
    "one shape": lambda: job("MUL", (COLUMN, COLUMN.T.copy()), BYTES),
    "int16 gates": lambda: job("MUL", (WIDE[1], WIDE[0][0]), ((1e-3, 0), (3e-5, 0), (1e-3, 0))),
    "int16": lambda: job("MUL", (WIDE[0], WIDE[1]), ((1e-3, 0), (3e-5, 0), (7e-4, 0))),
    "int16 sum": lambda: job("ADD", (WIDE[0], WIDE[1]), ((1e-3, 0), (3e-4, 0), (1.2e-3, 0))),
    "int16 sum, second greater": lambda: job("ADD", (WIDE[0], WIDE[1]), ((2e-4, 0), (3e-4, 0), (2.1e-4, 0)), "RELU"),
    "int16 sum, equal scales": lambda: job("ADD", (WIDE[0], WIDE[1]), ((1e-3, 0), (1e-3, 0), (1.7e-3, 0))),
}
GENERAL = {
    "several rows of gates": lambda: job("MUL", (COLUMN.reshape(4, 64, 256), STORED.reshape(4, 64, 1)), BYTES),
    "activation": lambda: job("MUL", (COLUMN, GATES), BYTES, "RELU6"),
    "factor above a half": lambda: job("MUL", (COLUMN, GATES), (*BYTES[:2], (0.0003, 5))),
    "int16 sum that broadcasts": lambda: job("ADD", (WIDE[0], WIDE[1][0]), ((1e-3, 0), (3e-4, 0), (1.2e-3, 0))),
}


@pytest.mark.parametrize("scaled", [True, False])
def test_c_equals_tensorflow_lite_micro(scaled: bool) -> None:
    jobs = [make() for make in (SCALED if scaled else GENERAL).values()]
    assert {"_scaled_int" in generated(library) for library, _, _ in jobs} == {scaled}
    ran = run_many_on_host([(library, library.modules[0], inputs) for library, inputs, _ in jobs])
    for got, (_, _, wanted) in zip(ran, jobs, strict=True):
        np.testing.assert_array_equal(got[0], wanted[0])


def test_another_scale_for_many_int8_elements_is_a_table() -> None:
    for values, table in ((COLUMN, True), (STORED, True), (STORED[:255], False)):
        network = Network()
        source = network.input(values.shape, 0.05, -3)
        content = network.build(outputs=[network.unary("QUANTIZE", source, scale=0.03, zero_point=7)])
        library = compile_bytes(content)
        assert ("mlf_lookup_int8(" in generated(library)) == table
        ((got,),) = run_many_on_host([(library, library.modules[0], (values,))])
        np.testing.assert_array_equal(got, tflite_micro_run(content, (values,))[0])


def test_on_a_board(tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs = [SCALED[name]() for name in ("one shape", "int16 gates", "int16 sum, second greater")]
    assert wrong_networks(jobs, "cortex-m4", tmp_path, tool, optimise="-O2") == []
