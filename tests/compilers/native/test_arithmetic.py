"""The C of the roundings, value by value, against the numpy arithmetic and exact integers."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import mlfbuild.compilers.native
from mlfbuild.graph.quantize import multiply_by_quantized_multiplier

KERNELS = Path(mlfbuild.compilers.native.__file__).parent / "kernels"

_SOURCE = """
#include "quantize.h"
#include "softmax.h"
int32_t rescale(int32_t value, int32_t multiplier, int16_t left, int16_t right) {
  const struct mlf_rescale rescale = {multiplier, left, right};
  return mlf_rescale_value((uint32_t)value, &rescale);
}
int8_t quantize(float real, float scale, int32_t zero_point) { return mlf_quantize_value(real, scale, zero_point); }
float exponential(float x) { return mlf_exp_float(x); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("arithmetic")
    (folder / "arithmetic.c").write_text(_SOURCE)
    flags = ["-std=c99", "-O2", "-shared", "-fPIC", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    output = folder / "arithmetic.so"
    subprocess.run(
        [tool("gcc"), *flags, "-static-libubsan", "-I", KERNELS, folder / "arithmetic.c", "-o", output], check=True
    )
    loaded = ctypes.CDLL(str(output))
    loaded.quantize.argtypes = [ctypes.c_float, ctypes.c_float, ctypes.c_int32]
    loaded.quantize.restype = ctypes.c_int8
    loaded.exponential.argtypes = [ctypes.c_float]
    loaded.exponential.restype = ctypes.c_float
    return loaded


def test_rescaling_equals_numpy(library: ctypes.CDLL) -> None:
    random = np.random.default_rng(1)
    limits = np.iinfo(np.int32)
    edges = np.array([limits.min, limits.min + 1, -3, -2, -1, 0, 1, 2, 3, limits.max - 1, limits.max], np.int32)
    for shift in range(-31, 31):
        for multiplier in (1 << 30, limits.max, int(random.integers(1 << 30, limits.max))):
            spread = random.integers(limits.min, limits.max, 40) >> random.integers(0, 31, 40)
            values = np.concatenate([edges, spread.astype(np.int32)])
            expected = multiply_by_quantized_multiplier(values, multiplier, shift)
            got = [library.rescale(int(value), multiplier, max(shift, 0), max(-shift, 0)) for value in values]
            assert got == expected.tolist(), (multiplier, shift)


def test_quantizing_rounds_half_away_from_zero(library: ctypes.CDLL) -> None:
    random = np.random.default_rng(2)
    reals = np.concatenate(
        [
            np.arange(-200, 200, 0.25),
            random.normal(0, 60, 2000),
            [0.49999997, -0.49999997, 1e30, -1e30, math.inf, -math.inf, 126.99999, 8388609.0],
        ]
    ).astype(np.float32)
    for scale, zero_point in ((1.0, 0), (0.5, -128), (0.05, 127), (1e-30, 3)):
        for real in reals:
            with np.errstate(over="ignore"):
                quotient = float(real / np.float32(scale))
            if math.isinf(quotient):
                expected = 127 if quotient > 0 else -128
            else:
                away = math.floor(abs(Fraction(quotient)) + Fraction(1, 2))
                expected = min(max(int(math.copysign(away, quotient)) + zero_point, -128), 127)
            assert library.quantize(real, scale, zero_point) == expected, (real, scale, zero_point)
    assert library.quantize(math.nan, 1.0, -5) == -5


def test_exponential_is_close(library: ctypes.CDLL) -> None:
    points = np.concatenate([np.linspace(-86.9, 0, 20_000), -np.logspace(-10, 1, 500)]).astype(np.float32)
    got = np.array([library.exponential(x) for x in points])
    exact = np.exp(points.astype(np.float64))
    assert np.abs(got / exact - 1).max() < 3e-7
    assert library.exponential(0.0) == 1.0
    assert library.exponential(-88.0) == 0.0
    assert library.exponential(-math.inf) == 0.0
    assert math.isnan(library.exponential(math.nan))
