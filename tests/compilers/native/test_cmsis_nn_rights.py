"""Conditions for calls of CMSIS-NN: what is called anyway, with other numbers, comes to the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, strategies as st

from mlfbuild.compilers.native.cmsis_nn.layer import FEATURES, MVE, Layer
from mlfbuild.compilers.native.cmsis_nn.rights import fits_int16, fitting_rescales, reads_depthwise, reads_row
from mlfbuild.graph.quantize import Rescale, multiply_by_quantized_multiplier

MULTIPLIERS = st.integers(1 << 30, (1 << 31) - 1)


@given(MULTIPLIERS, st.integers(0, (1 << 31) - 1), st.integers(1, 40))
def test_a_channel_without_output_keeps_giving_zeros(multiplier: int, bias: int, inputs: int) -> None:
    """As networks have them whose channels died in training: the shift is the largest there is, and so is the bias."""
    before = Rescale(multiplier, -31)
    weights = np.ones((1, inputs), np.int8)
    found = fitting_rescales(weights, np.array([bias], np.int64), [before])
    largest = bias + 255 * inputs
    sums = np.array([-largest, -1, 0, 1, largest])
    if found is None:
        assert largest >= 1 << 30  # where it might round up to 1
    else:
        assert found == (Rescale(0, 0),)
        assert not multiply_by_quantized_multiplier(sums, multiplier, -31).any()


@given(MULTIPLIERS, st.integers(-30, 8), st.integers(1, 1 << 22))
def test_other_channels_keep_their_factors_where_32_bits_suffice(multiplier: int, shift: int, inputs: int) -> None:
    rescale, weights = Rescale(multiplier, shift), np.broadcast_to(np.int8(127), (1, inputs))
    bias = np.zeros(1, np.int32)
    fits = 383 * 127 * inputs < 1 << 31 and (255 * 127 * inputs) << max(shift, 0) < 1 << 31
    assert fitting_rescales(weights, bias, [rescale]) == ((rescale,) if fits else None)


def test_sums_of_int16_fit_up_to_a_filter_of_516_inputs() -> None:
    """127 * 2**15 * 516 is just below 2**31."""
    rescales = [Rescale(1 << 30, -20)]
    for wide in (True, False):
        fits = [
            fits_int16(np.full((1, n), 127, np.int8), np.zeros(1, np.int64), rescales, wide=wide) for n in (515, 517)
        ]
        assert fits == [True, False]


def test_a_row_is_read_rightly_by_all_but_mve() -> None:
    """A filter of 5 over 9 pixels, by steps of 2: the last window reaches two pixels over the end."""
    layer = Layer(1, (1, 9), 4, (1, 5), 8, (1, 5), (1, 2), (0, 2))
    assert [reads_row(layer, each) for each in FEATURES] == [True, True, False]
    by_three = Layer(1, (1, 9), 4, (1, 9), 8, (1, 3), (1, 1), (0, 1))
    assert all(reads_row(by_three, each) for each in FEATURES)


def test_3x3_wants_the_middle_of_its_windows_on_the_image() -> None:
    beside = Layer(1, (4, 2), 4, (4, 2), 4, (3, 3), (1, 1), (1, 0))
    assert [reads_depthwise(beside, each) for each in FEATURES] == [False, False, True]
    inside = Layer(1, (4, 2), 4, (4, 2), 4, (3, 3), (1, 1), (1, 1))
    assert all(reads_depthwise(inside, each) for each in FEATURES)


def test_with_one_input_channel_mve_makes_a_convolution_of_a_depthwise_one() -> None:
    layer = Layer(1, (1, 17), 1, (1, 5), 8, (1, 5), (1, 4), (0, 2))
    assert not reads_depthwise(layer, MVE)
    assert reads_depthwise(replace(layer, channels=4, output_channels=4), MVE)
