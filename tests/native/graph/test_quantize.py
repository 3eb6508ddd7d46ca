"""Multipliers, roundings and clamps against their definitions in exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.native.graph import Activation, DType, Quantization, Tensor
from mlfbuild.native.graph.fixed_point import exp_of_negative, high_multiply, reciprocal_of_one_plus, shift_right
from mlfbuild.native.graph.quantize import (
    Rescale,
    activation_range,
    float_activation_range,
    fully_connected_rescales,
    mean_rescale,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    round_half_away,
    softmax_rescale,
)
from mlfbuild.native.graph.rescales import add_rescales

INT32 = st.integers(-(2**31), 2**31 - 1)
MULTIPLIER = st.integers(2**30, 2**31 - 1)


def tensor(scale: float, zero_point: int = 0, shape: tuple[int, ...] = (1,)) -> Tensor:
    return Tensor("t", shape, DType.INT8, Quantization((float(np.float32(scale)),), (zero_point,)))


@pytest.mark.parametrize(
    ("real", "expected"),
    [
        (0.0, Rescale(0, 0)),
        (1.0, Rescale(2**30, 1)),
        (0.5, Rescale(2**30, 0)),
        (0.75, Rescale(3 * 2**29, 0)),
        (1 - 2**-40, Rescale(2**30, 1)),  # rounds up to a power of two
        (2.0**-32, Rescale(2**30, -31)),
        (2.0**-33, Rescale(0, 0)),
        (2.0**29, Rescale(2**30, 30)),
    ],
)
def test_quantize_multiplier(real: float, expected: Rescale) -> None:
    assert quantize_multiplier(real) == expected


@pytest.mark.parametrize("real", [2.0**30, math.inf, math.nan, -1.0])
def test_factors_without_a_multiplier(real: float) -> None:
    with pytest.raises(OverflowError, match="cannot rescale by"):
        quantize_multiplier(real)


@settings(derandomize=True)
@given(st.floats(2**-30, 2**29))
def test_a_multiplier_is_within_half_a_bit(real: float) -> None:
    rescale = quantize_multiplier(real)
    assert 2**30 <= rescale.multiplier < 2**31
    value = Fraction(rescale.multiplier) * Fraction(2) ** (rescale.shift - 31)
    assert abs(value - Fraction(real)) <= Fraction(2) ** (rescale.shift - 32)


@settings(derandomize=True)
@given(INT32, MULTIPLIER, st.integers(-31, 0))
def test_products_are_rounded_twice(x: int, multiplier: int, shift: int) -> None:
    first = math.floor(Fraction(x * multiplier, 2**31) + Fraction(1, 2))
    quotient = Fraction(first, 2**-shift)
    second = math.floor(abs(quotient) + Fraction(1, 2)) * (1 if quotient >= 0 else -1)
    assert multiply_by_quantized_multiplier(np.array([x], np.int32), multiplier, shift).tolist() == [second]


def test_a_left_shift_comes_before_the_product() -> None:
    # (3 * 8) * (2**30 + 1) / 2**31 is slightly more than 12; shifting the rounded product of 3 would give 8 * 2 = 16.
    assert multiply_by_quantized_multiplier(np.array([3], np.int32), 2**30 + 1, 3).tolist() == [12]


def test_multipliers_broadcast_over_channels() -> None:
    x = np.full((2, 3), 1000, np.int32)
    got = multiply_by_quantized_multiplier(x, np.array([2**30, 2**30, 2**30]), np.array([0, 1, -1]))
    assert got.tolist() == [[500, 1000, 250]] * 2
    assert got.dtype == np.int32


def test_the_only_product_that_saturates() -> None:
    least = np.array([-(2**31)])
    assert high_multiply(least, -(2**31)).tolist() == [2**31 - 1]


@pytest.mark.parametrize(("x", "expected"), [(5, 3), (-5, -3), (6, 3), (-6, -3), (4, 2), (-7, -4), (1, 1), (-1, -1)])
def test_shift_right_rounds_half_away(x: int, expected: int) -> None:
    assert shift_right(np.array([x]), 1).tolist() == [expected]


def test_shift_right_by_zero() -> None:
    assert shift_right(np.array([-3, 3]), 0).tolist() == [-3, 3]


@settings(derandomize=True)
@given(st.integers(-(2**31), 0))
def test_exponential(raw: int) -> None:
    got = exp_of_negative(np.array([raw]), 5)[0] / 2**31
    assert got == pytest.approx(math.exp(raw / 2**26), abs=1e-6)


@settings(derandomize=True)
@given(st.integers(0, 2**31 - 1))
def test_reciprocal(raw: int) -> None:
    got = reciprocal_of_one_plus(np.array([raw]))[0] / 2**31
    assert got == pytest.approx(1 / (1 + raw / 2**31), abs=1e-6)


def test_round_half_away() -> None:
    values = np.array([0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, -0.2, 7.0], np.float32)
    assert round_half_away(values).tolist() == [1, -1, 2, 3, -3, 0, 0, 7]


@pytest.mark.parametrize(
    ("activation", "scale", "zero_point", "expected"),
    [
        (Activation.NONE, 0.1, 5, (-128, 127)),
        (Activation.RELU, 0.1, 5, (5, 127)),
        (Activation.RELU6, 0.1, 5, (5, 65)),
        (Activation.RELU6, 0.01, 5, (5, 127)),
        (Activation.RELU_N1_TO_1, 0.1, -120, (-128, -110)),
        (Activation.RELU_N1_TO_1, 2.0, 0, (-1, 1)),  # half a step, away from zero
    ],
)
def test_activation_range(activation: Activation, scale: float, zero_point: int, expected: tuple[int, int]) -> None:
    assert activation_range(activation, tensor(scale, zero_point)) == expected


def test_bound_too_large_for_float32() -> None:
    with pytest.raises(OverflowError, match=r"6\.0 divided by the scale 1e-39 is no float32"):
        activation_range(Activation.RELU6, tensor(1e-39))


def test_float_activation_range() -> None:
    assert float_activation_range(Activation.NONE) == (-math.inf, math.inf)
    assert float_activation_range(Activation.RELU6) == (0, 6)


def test_the_product_of_two_scales_is_double_or_rounded_to_float32() -> None:
    source, weights, output = tensor(0.1), tensor(0.007, shape=(2, 1)), tensor(0.3)
    today = quantize_multiplier(float(np.float32(0.1)) * float(np.float32(0.007)) / float(np.float32(0.3)))
    older = quantize_multiplier(float(np.float32(0.1) * np.float32(0.007)) / float(np.float32(0.3)))
    assert today != older
    assert fully_connected_rescales(source, weights, output, rounded=False) == (today, today)
    assert fully_connected_rescales(source, weights, output, rounded=True) == (older, older)


def test_mean_folds_the_count_into_the_multiplier() -> None:
    assert mean_rescale(tensor(1), tensor(1), 1) == Rescale(2**30, 1)
    assert mean_rescale(tensor(1), tensor(1), 6) == Rescale(2**30 * 4 // 6, -1)


def test_add_refuses_a_rescaling_above_one() -> None:
    assert add_rescales(tensor(1), tensor(0.5), tensor(1)).inputs == (Rescale(2**30, 0), Rescale(2**30, -1))
    with pytest.raises(OverflowError, match="the output's scale 1e-06 is too small for inputs of scale 1"):
        add_rescales(tensor(1), tensor(0.5), tensor(1e-6))


def test_softmax_counts_down_to_its_radius() -> None:
    softmax = softmax_rescale(tensor(0.125), 1.0)
    assert softmax.rescale == Rescale(2**30, 24)
    assert softmax.least_difference == -(31 * 2**26 // 2**24)


def test_softmax_of_a_tiny_scale() -> None:
    with pytest.raises(OverflowError, match="beta 1 times the input's scale 1e-09 is too small"):
        softmax_rescale(tensor(1e-9), 1.0)
