"""ADD and SUB of int8 as a linear function: every pair of inputs against TensorFlow Lite Micro."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from support.board_cases import Job, wrong_networks
from support.host_c import run_many_on_host
from support.native import compile_bytes, generated
from support.oracle import tflite_micro_run
from support.tflite_builder import Network

STORED = np.arange(-128, 128).astype(np.int8)
PAIRS = (np.repeat(STORED, 256).reshape(256, 256), np.tile(STORED, 256).reshape(256, 256))

LINEAR = [
    ("ADD", (0.05, 0.02, 0.06), (-128, 4, -128), "NONE"),
    ("ADD", (0.02, 0.02, 0.04), (0, 0, 0), "RELU"),
    ("ADD", (0.3, 0.004, 0.2), (-17, 127, 3), "RELU6"),
    ("SUB", (0.05137, 0.07179, 0.10093), (-128, -128, 127), "NONE"),
    ("SUB", (0.01, 0.3, 0.25), (12, -5, 0), "RELU_N1_TO_1"),
]
"""Operator, scales, zero points (first, second, output), activation."""

PORTABLE = [
    ("ADD", (0.01701718, 0.07349532, 0.1510684), (127, 127, -128), "NONE"),
    ("SUB", (0.05, 0.07, 0.1), (-128, -128, 127), "NONE"),
]
"""Zero points that leave too few bits; sums in the middle of two outputs, which are rounded away from zero."""


def model(
    operator: str, scales: tuple[float, ...], zero_points: tuple[int, ...], activation: str, shape: tuple[int, ...]
) -> bytes:
    network = Network()
    first, second = (network.input(shape, scales[at], zero_points[at]) for at in (0, 1))
    output = network.binary(operator, first, second, activation=activation, scale=scales[2], zero_point=zero_points[2])
    return network.build(outputs=[output])


KERNELS = {"cortex-m4": "mlf_add_linear_int8", "cortex-m0plus": "mlf_add_linear_int8"}
KERNELS["cortex-m55"] = "mlf_add_linear_int8_mve"


@pytest.mark.parametrize("cpu", KERNELS)
def test_every_pair(cpu: str) -> None:
    models = [model(*case, shape=(256, 256)) for case in (*LINEAR, *PORTABLE)]
    libraries = [compile_bytes(content, f"net{index}", cpu) for index, content in enumerate(models)]
    used = [f"{KERNELS[cpu]}(" in generated(library) for library in libraries]
    assert used == [True] * len(LINEAR) + [False] * len(PORTABLE)
    jobs = [(library, library.modules[0], PAIRS) for library in libraries]
    for content, got in zip(models, run_many_on_host(jobs), strict=True):
        np.testing.assert_array_equal(got[0], tflite_micro_run(content, PAIRS)[0])


@pytest.mark.parametrize("cpu", KERNELS)
def test_lengths_that_leave_a_remainder(cpu: str) -> None:
    case = LINEAR[0]
    for shape in ((3,), (1, 7), (2, 5), (17,)):
        content = model(*case, shape=shape)
        library = compile_bytes(content, cpu=cpu)
        inputs = tuple(pair.reshape(-1)[300 : 300 + np.prod(shape)].reshape(shape) for pair in PAIRS)
        ((got,),) = run_many_on_host([(library, library.modules[0], inputs)])
        np.testing.assert_array_equal(got, tflite_micro_run(content, inputs)[0])


def test_broadcast_shapes_use_loops() -> None:
    network = Network()
    first, second = network.input((2, 4), 0.05, 0), network.input((4,), 0.05, 0)
    content = network.build(outputs=[network.add(first, second, scale=0.1, zero_point=0)])
    assert "add_linear" not in "".join(
        line for line in generated(compile_bytes(content)).splitlines() if "#include" in line
    )


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_on_a_board(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs: list[Job] = []
    for index, case in enumerate(LINEAR):
        count = 64 * 32 + 5 * index
        content = model(*case, shape=(count,))
        inputs = tuple(pair.reshape(-1)[1024 * index :][:count] for pair in PAIRS)
        jobs.append((compile_bytes(content, f"net{index}", cpu), inputs, tflite_micro_run(content, inputs)))
    assert wrong_networks(jobs, cpu, tmp_path, tool, optimise="-O2") == []
