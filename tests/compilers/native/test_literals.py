"""Numbers in C read back as the numbers they were."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlfbuild.compilers.native.literals import array_lines, braces, floating, integer


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_read_back(value: float) -> None:
    text = floating(value)
    assert text.endswith("f")
    assert "." in text or "e" in text
    assert np.float32(text[:-1]).tobytes() == np.float32(value).tobytes()


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=30))
def test_arrays_of_floats_are_their_literals(values: list[float]) -> None:
    words = " ".join(array_lines(np.array(values, np.float32))).replace(",", "").split()
    assert words == [floating(value) for value in values]


def test_what_has_no_digits() -> None:
    values = np.array([math.inf, -math.inf, math.nan, 1.5], np.float32)
    assert list(array_lines(values)) == ["    INFINITY, -INFINITY, NAN, 1.5f,"]


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (-128, "-128"), (2**31 - 1, "2147483647"), (-(2**31), "INT32_MIN")]
)
def test_integers(value: int, text: str) -> None:
    assert integer(value) == text
    assert braces([value, 1]) == f"{{{text}, 1}}"


def test_lines_are_short_and_in_memory_order() -> None:
    values = np.arange(60, dtype=np.int8).reshape(3, 20)
    lines = list(array_lines(values))
    assert max(map(len, lines)) <= 120
    assert [int(word) for line in lines for word in line.strip(" ,").split(", ")] == list(range(60))
