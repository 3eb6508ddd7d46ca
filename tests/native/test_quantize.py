"""QUANTIZE and DEQUANTIZE of float32 in assembly: ties, bounds, infinities, NaN and rests of a few elements."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support.board_cases import Job, wrong_networks
from support.examples import first_on_push
from support.host_c import run_on_host
from support.native import compile_bytes
from support.tflite_builder import Network

Array = npt.NDArray[Any]

COUNTS = (3, 4, 37, 800)
RESULTS = (("int8", 0.1, 3), ("int8", 2.0**-4, -128), ("int16", 0.3, 0), ("int16", 1e-3, 0))
SOURCES = (("int8", 3), ("int8", -128), ("uint8", 200), ("int16", 0))
NO_QUOTIENT = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e9, -1e9, 1e-45, -0.0], np.float32)


def floats(count: int) -> Array:
    """Return numbers at ties and beside them, beyond the bounds of the integers, and without a quotient."""
    random = np.random.default_rng(count)
    scales = random.choice(np.array([scale for _, scale, _ in RESULTS], np.float32), count)
    ties = scales * (random.integers(-150, 150, count) + np.float32(0.5)).astype(np.float32)
    near = np.nextafter(ties, ties + random.integers(-1, 2, count).astype(np.float32))
    wide = scales * random.integers(-40_000, 40_000, count).astype(np.float32)
    kind = random.random(count)
    return np.select([kind < 0.7, kind < 0.9], [near, wide], random.choice(NO_QUOTIENT, count)).astype(np.float32)


def quantizing(count: int) -> tuple[bytes, list[Array]]:
    network = Network()
    source = network.input((1, count))
    outputs = [network.activation((1, count), scale, zero, dtype=dtype) for dtype, scale, zero in RESULTS]
    for output in outputs:
        network.operator("QUANTIZE", [source], output, "QuantizeOptions")
    return network.build(outputs), [floats(count).reshape(1, -1)]


def dequantizing(count: int) -> tuple[bytes, list[Array]]:
    network, random = Network(), np.random.default_rng(count)
    sources = [network.input((1, count), 0.1, zero, dtype=dtype) for dtype, zero in SOURCES]
    values = [
        random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, (1, count)).astype(dtype) for dtype, _ in SOURCES
    ]
    return network.build([network.dequantize(source) for source in sources]), values


def jobs(cpu: str) -> list[Job]:
    """Return networks with the outputs of their portable C, which others compare with TensorFlow Lite Micro."""
    found: list[Job] = []
    for make in (quantizing, dequantizing):
        for count in COUNTS:
            model, inputs = make(count)
            expected = run_on_host(compile_bytes(model), inputs)
            found.append((compile_bytes(model, f"{make.__name__}_{count}", cpu), inputs, expected))
    return found


@pytest.mark.parametrize(
    ("cpu", "optimise"),
    first_on_push([("cortex-m4", "-O2"), ("cortex-m55", "-O2"), ("cortex-m4", "-O0"), ("cortex-m55", "-O0")]),
)
def test_conversions_on_the_board(cpu: str, optimise: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    assert wrong_networks(jobs(cpu), cpu, tmp_path, tool, optimise=optimise) == []
