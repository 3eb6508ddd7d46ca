"""Numbers printed in C read back as the same numbers."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, strategies as st

from mlfbuild.library.cgen.literals import array_lines, braces, floating, hexadecimal_lines, integer


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


def test_nan_and_infinity() -> None:
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
    lines = "\n".join(array_lines(values)).splitlines()
    assert max(map(len, lines)) <= 120
    assert [int(word) for line in lines for word in line.strip(" ,").split(", ")] == list(range(60))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.float32, np.bool_])
@pytest.mark.parametrize("count", [0, 1, 9, 24, 25, 24 * 4096 + 1])
def test_large_arrays_are_printed_piece_by_piece(dtype: type[np.generic], count: int) -> None:
    values = np.random.default_rng(count).integers(0, 2, count).astype(dtype)
    words = (
        "\n".join(array_lines(values))
        .replace("INT64_C(", "")
        .replace(")", "")
        .replace("f,", ",")
        .replace("u,", ",")
        .split()
    )
    assert [float(word.rstrip(",")) for word in words] == values.tolist()


def test_the_least_integers() -> None:
    assert list(array_lines(np.array([-(2**31), 0], np.int32))) == ["    INT32_MIN, 0,"]
    assert list(array_lines(np.array([-(2**63), -(2**31)], np.int64))) == ["    INT64_MIN, INT64_C(-2147483648),"]


def test_words_are_hexadecimal_except_zeros() -> None:
    values = np.array([0, 1, -1, -(2**31), 2**31 - 1, 0x00FF0000, 0, 16, 17, 18], np.int32)
    assert list(hexadecimal_lines(values)) == [
        (
            "    0, 0x00000001u, 0xffffffffu, 0x80000000u, 0x7fffffffu, 0x00ff0000u, 0, 0x00000010u, 0x00000011u,\n"
            "    0x00000012u,"
        )
    ]


@pytest.mark.parametrize("size", [1, 9, 9 * 4096, 9 * 4096 + 1])
def test_hexadecimal_words_are_those_of_the_array(size: int) -> None:
    values = np.random.default_rng(size).integers(-(2**31), 2**31, size, np.int32)
    words = re.findall(r"\w+", " ".join(hexadecimal_lines(values)))
    assert all(word == "0" or word.endswith("u") for word in words)
    assert np.array_equal(
        np.array([int(word.removesuffix("u"), 16) for word in words], np.uint32).view(np.int32), values
    )
