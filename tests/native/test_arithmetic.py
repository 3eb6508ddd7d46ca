"""The rounding functions in C equal the numpy arithmetic and exact integers for each value."""

import ctypes
import math
import subprocess
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from mlfbuild.native.graph.fixed_point import inverse_square_root
from mlfbuild.native.graph.quantize import multiply_by_quantized_multiplier
from mlfbuild.native.kernels import kernel_headers

FUNCTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exponential": np.exp, "exponential_less_one": np.expm1, "logarithm": np.log, "root": np.sqrt, "tangent": np.tanh,
    "logistic": lambda x: 1 / (1 + np.exp(-x)), "sine": np.sin, "cosine": np.cos,
}  # fmt: skip

_SOURCE = """
#include "fixed_point.h"
#include "float_math.h"
#include "quantize.h"
#include "sin.h"
int32_t rescale(int32_t value, int32_t multiplier, int16_t left, int16_t right) {
  const struct mlf_rescale rescale = {multiplier, left, right};
  return mlf_rescale_value((uint32_t)value, &rescale);
}
int32_t quantize(float real, float scale, int32_t zero_point, int32_t minimum, int32_t maximum) {
  return mlf_quantize_value(real, scale, zero_point, minimum, maximum);
}
int64_t inverse_square_root(int32_t value) {
  const struct mlf_rescale rescale = mlf_inverse_square_root(value, 0);
  return (int64_t)rescale.multiplier * 64 + rescale.left_shift - rescale.right_shift;
}
float exponential(float x) { return mlf_float_exp(x); }
float exponential_less_one(float x) { return mlf_float_expm1(x); }
float logarithm(float x) { return mlf_float_log(x); }
float root(float x) { return mlf_float_sqrt(x); }
float tangent(float x) { return mlf_float_tanh(x); }
float logistic(float x) { return mlf_float_logistic(x); }
float sine(float x) { return mlf_float_sin(x); }
float cosine(float x) { return mlf_float_cos(x); }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("arithmetic")
    (folder / "arithmetic.c").write_text(_SOURCE)
    for name, text in kernel_headers().items():
        (folder / name).write_bytes(text)
    flags = ["-std=c99", "-O2", "-shared", "-fPIC", "-fsanitize=undefined", "-fno-sanitize-recover=all"]
    output = folder / "arithmetic.so"
    subprocess.run([tool("gcc"), *flags, "-static-libubsan", folder / "arithmetic.c", "-o", output], check=True)
    loaded = ctypes.CDLL(str(output))
    loaded.quantize.argtypes = [ctypes.c_float, ctypes.c_float, *[ctypes.c_int32] * 3]
    loaded.quantize.restype = ctypes.c_int32
    loaded.inverse_square_root.argtypes, loaded.inverse_square_root.restype = [ctypes.c_int32], ctypes.c_int64
    for name in FUNCTIONS:
        function = getattr(loaded, name)
        function.argtypes, function.restype = [ctypes.c_float], ctypes.c_float
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


def test_inverse_square_root_equals_numpy(library: ctypes.CDLL) -> None:
    random = np.random.default_rng(3)
    values = [0, 1, 2, 3, 4, (1 << 27) - 1, 1 << 27, (1 << 29) - 1, 1 << 29, (1 << 31) - 1]
    values += (random.integers(1, 1 << 31, 500) >> random.integers(0, 31, 500)).tolist()
    for value in values:
        multiplier, shift = inverse_square_root(value)
        got = library.inverse_square_root(value)
        left = (got + 32) % 64 - 32
        assert (got - left) // 64 * 2.0**left == multiplier * 2.0**shift, value
        assert multiplier * 2.0 ** (shift - 31) == pytest.approx(max(value, 1) ** -0.5, rel=1e-5)


def test_quantizing_rounds_half_away_from_zero(library: ctypes.CDLL) -> None:
    random = np.random.default_rng(2)
    reals = np.concatenate(
        [
            np.arange(-200, 200, 0.25),
            random.normal(0, 60, 2000),
            [0.49999997, -0.49999997, 1e30, -1e30, math.inf, -math.inf, 126.99999, 8388609.0],
        ]
    ).astype(np.float32)
    reals = np.concatenate([reals, reals * np.float32(250)])
    for scale, zero_point, bits in ((1.0, 0, 8), (0.5, -128, 8), (0.05, 127, 8), (1e-30, 3, 8), (0.5, 0, 16)):
        least, greatest = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        for real in reals:
            with np.errstate(over="ignore"):
                quotient = float(real / np.float32(scale))
            if math.isinf(quotient):
                expected = greatest if quotient > 0 else least
            else:
                away = math.floor(abs(Fraction(quotient)) + Fraction(1, 2))
                expected = min(max(int(math.copysign(away, quotient)) + zero_point, least), greatest)
            assert library.quantize(real, scale, zero_point, least, greatest) == expected, (real, scale, zero_point)
    assert library.quantize(math.nan, 1.0, -5, -128, 127) == -5


def relative_error(library: ctypes.CDLL, name: str, points: np.ndarray) -> float:
    """Return the largest relative error of a float32 function over ``points``."""
    points = points.astype(np.float32)
    got = np.array([getattr(library, name)(x) for x in points], np.float64)
    exact = FUNCTIONS[name](points.astype(np.float64))
    return float((np.abs(got - exact) / np.where(exact == 0, 1, np.abs(exact))).max())


NEAR_ZERO = np.concatenate([np.logspace(-30, 1, 800), -np.logspace(-30, 1, 800), np.linspace(-2, 2, 4001)])


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("exponential", np.concatenate([np.linspace(-86.9, 88.7, 20_000), NEAR_ZERO])),
        ("exponential_less_one", np.concatenate([np.linspace(-86.9, 0, 9_000), NEAR_ZERO[NEAR_ZERO <= 0]])),
        ("logarithm", np.concatenate([np.logspace(-44, 38, 9_000), np.linspace(0.5, 2, 9_001)])),
        ("root", np.concatenate([np.logspace(-37, 38, 9_000), np.linspace(0.01, 2, 2_000)])),
        ("tangent", np.concatenate([np.linspace(-20, 20, 9_000), NEAR_ZERO])),
        ("logistic", np.linspace(-86, 30, 9_000)),
    ],
)
def test_functions_are_close(library: ctypes.CDLL, name: str, points: np.ndarray) -> None:
    assert relative_error(library, name, points) < 1e-6


def test_roots_are_rounded_to_nearest(library: ctypes.CDLL) -> None:
    random = np.random.default_rng(4)
    bits = np.concatenate([random.integers(0, 0x7F800000, 20_000), np.arange(2000), np.arange(2000) + (1 << 23) - 1000])
    points = bits.astype(np.uint32).view(np.float32)
    assert [library.root(x) for x in points] == np.sqrt(points).tolist()


@pytest.mark.parametrize("name", ["sine", "cosine"])
def test_angles_of_any_size_are_close(library: ctypes.CDLL, name: str) -> None:
    random = np.random.default_rng(5)
    bits = random.integers(0, 0x7F800000, 20_000).astype(np.uint32)
    points = np.concatenate([bits.view(np.float32), np.linspace(-20, 20, 5001, dtype=np.float32), -NEAR_ZERO])
    points = points.astype(np.float32)
    got = np.array([getattr(library, name)(x) for x in points])
    assert np.abs(got - FUNCTIONS[name](points.astype(np.float64))).max() < 2e-7


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("exponential", 0.0, 1.0), ("exponential", -88.0, 0.0), ("exponential", -math.inf, 0.0),
        ("exponential", 89.0, math.inf), ("exponential", math.inf, math.inf), ("logarithm", 1.0, 0.0),
        ("logarithm", 0.0, -math.inf), ("logarithm", -0.0, -math.inf), ("logarithm", math.inf, math.inf),
        ("root", 0.0, 0.0), ("root", math.inf, math.inf), ("tangent", math.inf, 1.0), ("tangent", -math.inf, -1.0),
        ("logistic", math.inf, 1.0), ("logistic", -math.inf, 0.0),
    ],
)  # fmt: skip
def test_functions_at_their_limits(library: ctypes.CDLL, name: str, x: float, expected: float) -> None:
    assert getattr(library, name)(x) == expected


@pytest.mark.parametrize("name", ["exponential", "logarithm", "root", "tangent", "logistic", "sine", "cosine"])
def test_functions_of_nan_are_nan(library: ctypes.CDLL, name: str) -> None:
    assert math.isnan(getattr(library, name)(math.nan))


@pytest.mark.parametrize("name", ["sine", "cosine"])
def test_functions_of_infinite_angles_are_nan(library: ctypes.CDLL, name: str) -> None:
    assert math.isnan(getattr(library, name)(math.inf))


@pytest.mark.parametrize("name", ["logarithm", "root"])
def test_functions_of_negative_numbers(library: ctypes.CDLL, name: str) -> None:
    assert math.isnan(getattr(library, name)(-1.0))
