"""Sizes, counts and percentages as project files contain them."""

from decimal import Decimal

import pytest
from hypothesis import given, strategies as st

from mlfbuild.core.keys.units import (
    duration_text,
    frequency_text,
    parse_count,
    parse_duration,
    parse_frequency,
    parse_percent,
    parse_size,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("98304", 98304), ("96 KiB", 98304), ("96KiB", 98304), ("96k", 98304), ("96K", 98304), ("96 KB", 98304),
        ("96 kB", 98304), ("1.5 KiB", 1536), ("1 MiB", 1 << 20), ("0.5M", 1 << 19), ("2 GiB", 2 << 30), ("12 B", 12),
        ("98_304", 98304), (" 64k ", 65536), ("0", 0),
        ("", None), ("k", None), ("-1", None), ("1,5 KiB", None), ("1 kilo", None), ("0.3", None), ("1.0001 KiB", None),
        ("1e3", None), ("96  KiB", None), ("9999999999999999999 GiB", None), ("1__0", None),
    ],
)  # fmt: skip
def test_sizes(text: str, size: int | None) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "count"),
    [("3200000", 3_200_000), ("3.2 M", 3_200_000), ("300k", 300_000), ("3_200_000", 3_200_000), ("3.2 MiB", None)],
)
def test_counts(text: str, count: int | None) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        ("2 %", "2"), ("2%", "2"), ("0.5 %", "0.5"), (" 0.125% ", "0.125"), ("0 %", "0"), ("250 %", "250"),
        ("2", None), ("0.02", None), ("%", None), ("-1 %", None), ("2  %", None), ("2 % %", None), ("1,5 %", None),
        ("0.0001 %", None), ("10000 %", None), ("two %", None), ("", None),
    ],
)  # fmt: skip
def test_percentages(text: str, percent: str | None) -> None:
    assert parse_percent(text) == (None if percent is None else Decimal(percent))


@pytest.mark.parametrize(
    ("text", "hertz"),
    [
        ("120 MHz", 120_000_000), ("120mhz", 120_000_000), ("32.768 kHz", 32_768), ("1 GHz", 10**9),
        ("64000000", 64_000_000),
        ("120 M", None), ("0.5 Hz", None), ("0 MHz", None), ("fast", None),
    ],
)  # fmt: skip
def test_frequencies(text: str, hertz: int | None) -> None:
    assert parse_frequency(text) == hertz


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("40 ms", 40_000_000), ("1.5 s", 1_500_000_000), ("250us", 250_000), ("0.125 us", 125), ("7 ns", 7),
        ("40", None), ("0.5 ns", None), ("40 min", None), ("-1 ms", None),
    ],
)  # fmt: skip
def test_times(text: str, nanoseconds: int | None) -> None:
    assert parse_duration(text) == nanoseconds


@given(st.integers(1, 1 << 40))
def test_quantities_in_messages_are_exact(value: int) -> None:
    assert parse_frequency(frequency_text(value).replace(",", "")) == value
    assert parse_duration(duration_text(value).replace(",", "")) == value


@given(st.integers(0, 1 << 40))
def test_whole_bytes_and_kib_are_sizes(size: int) -> None:
    assert parse_size(str(size)) == size
    assert parse_size(f"{size} KiB") == 1024 * size


def test_sizes_in_messages() -> None:
    assert [size_text(size) for size in (12, 98304, 100_000, 1 << 20, -2048)] == [
        "12 bytes", "98,304 bytes (96 KiB)", "100,000 bytes (97.7 KiB)", "1,048,576 bytes (1 MiB)",
        "-2,048 bytes (-2 KiB)",
    ]  # fmt: skip
