"""Quantities as they are written: ``96 KiB``, ``64k``, ``98304``; ``3.2 M``; ``2 %``; ``120 MHz``; ``40 ms``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from mlfbuild.core import Mistake, counted, in_quotes
from mlfbuild.core.keys.checks import Convert

_NUMBER = re.compile(r"([0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?) ?([A-Za-z]*)")
_SIZES = {"": 1, "b": 1, **{f"{prefix}{rest}": 1024**power for power, prefix in enumerate("kmg", 1)
                            for rest in ("", "b", "ib")}}  # fmt: skip
_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_FREQUENCIES = {"": 1, "hz": 1, "khz": 10**3, "mhz": 10**6, "ghz": 10**9}
_DURATIONS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_SLOWEST = 1000
"""Hz, so that 80 is not taken for 80 MHz by a reader and for 80 Hz by the build."""
_LARGEST = 1 << 62
_PERCENT = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) ?%")


def _pattern(units: str) -> str:
    return rf"^[0-9_]+(\.[0-9]+)? ?{units}$"


def _schema(units: str) -> dict[str, Any]:
    return {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": _pattern(units)}]}


SIZE_SCHEMA = _schema("([KkMmGg]?([Ii]?[Bb])?)")
COUNT_SCHEMA = _schema("[KkMmGg]?")
"""A size and a count as JSON Schema."""
FREQUENCY_TEXT = {"type": "string", "pattern": _pattern("([KkMmGg]?[Hh][Zz])?")}
FREQUENCY_SCHEMA = {"anyOf": [{"type": "integer", "minimum": _SLOWEST}, FREQUENCY_TEXT]}
DURATION_SCHEMA = {"type": "string", "pattern": _pattern("([NnUuMm]?[Ss])")}
PERCENT_SCHEMA = {"type": "string", "pattern": rf"^{_PERCENT.pattern}$"}


def parse_size(text: str) -> int | None:
    """Return the bytes that ``text`` means; ``None`` if it is not a size.

    K, M and G are 1024 and its powers, with or without ``iB`` or ``B``, in lower or upper case.
    """
    return _parsed(text, _SIZES)


def parse_count(text: str) -> int | None:
    """Return the number that ``text`` means; ``None`` if it is not a count. K, M and G are 1000 and its powers.

    Case is ignored, and ``_`` may separate digits. The result is exact: ``1.005 k`` is 1005, and ``0.5`` is not a
    count.
    """
    return _parsed(text, _COUNTS)


def parse_frequency(text: str) -> int | None:
    """Return the Hz that ``text`` means; ``None`` if it is not a frequency above 0.

    A bare number is Hz. Like the other readers of quantities, it is exact: ``32.768 kHz`` is 32768, and a fraction of a
    Hz is refused.
    """
    return _parsed(text, _FREQUENCIES) or None


def parse_duration(text: str) -> int | None:
    """Return the nanoseconds that ``text`` means; ``None`` if it is not a time.

    The unit is required, because a bare 40 can be read as milliseconds or as seconds.
    """
    return _parsed(text, _DURATIONS)


def parse_percent(text: str) -> Decimal | None:
    """Return the 2.5 of ``2.5 %``, exactly; ``None`` if ``text`` is not a percentage.

    The sign is required, because a bare 0.02 can be read as 2 % or as 0.02 %.
    """
    found = _PERCENT.fullmatch(text.strip())
    return None if found is None else Decimal(found[1])


def _parsed(text: str, units: dict[str, int]) -> int | None:
    found = _NUMBER.fullmatch(text.strip())
    if found is None or found[2].lower() not in units:
        return None
    # Not float: 1.005 k is 1005, but 1.005 * 1000 is 1004.9999999999999 and would be refused as no whole number.
    value = Fraction(found[1].replace("_", "")) * units[found[2].lower()]
    return int(value) if value.denominator == 1 and value < _LARGEST else None


def _quantity(
    parse: Callable[[str], int | Decimal | None], wanted: str, examples: str, schema: dict[str, Any], least: int | None
) -> Convert:
    """Return the conversion of a value of a project file; it raises ``Mistake`` for a value that is not ``wanted``.

    A number without a unit must be at least ``least``; ``None`` refuses all of them.
    """

    def convert(value: object) -> int | Decimal:
        found = parse(value) if isinstance(value, str) else None if least is None else value
        # bool is a subclass of int: without the first test, `flash: true` would be one byte.
        if isinstance(found, bool) or not isinstance(found, (int, Decimal)) or found < (least or 0):
            shown = in_quotes(value) if isinstance(value, str) else "nothing" if value is None else str(value).lower()
            raise Mistake("invalid-quantity", reason=f"{shown} is not {wanted}", hint=f"write it like {examples}")
        return found

    return Convert(convert, schema, before=True)


Size = Annotated[int, _quantity(parse_size, "a size", "98304, 96 KiB or 96k", SIZE_SCHEMA, 0)]
"""Bytes."""
Count = Annotated[int, _quantity(parse_count, "a whole number", "3200000, 3.2 M or 300k", COUNT_SCHEMA, 0)]
Percent = Annotated[Decimal, _quantity(parse_percent, "a percentage", "2 % or 0.5 %", PERCENT_SCHEMA, None)]
_CLOCKS = "120 MHz, 32.768 kHz or 120000000"
Frequency = Annotated[int, _quantity(parse_frequency, "the clock of a core", _CLOCKS, FREQUENCY_SCHEMA, _SLOWEST)]
"""Hz."""
_TIMES = "40 ms, 1.5 s or 250 us"
Duration = Annotated[int, _quantity(parse_duration, "a time with its unit", _TIMES, DURATION_SCHEMA, None)]
"""Nanoseconds."""


def size_text(size: int) -> str:
    """Return bytes exactly and in a readable unit: ``98,304 bytes (96 KiB)``.

    The exact number comes first; the one in KiB or MiB is rounded to one decimal. Numbers below 1 KiB have no second
    form: ``270 bytes``.
    """
    return counted(size, "byte") if abs(size) < 1024 else f"{size:,} bytes ({rounded_size(size)})"


def rounded_size(size: int) -> str:
    """Return bytes in a readable unit, rounded to one decimal: ``96 KiB``, ``270 bytes``.

    K is 1024. For text in which the exact number stands elsewhere, or does not matter: ``size_text`` has both.
    """
    if abs(size) < 1024:
        return counted(size, "byte")
    unit, name = (1024, "KiB") if abs(size) < 1024**2 else (1024**2, "MiB")
    rounded = f"{size / unit:.1f}".removesuffix(".0")
    return f"{rounded} {name}"


def frequency_text(frequency: int) -> str:
    """Return a frequency exactly, in a readable unit: ``120 MHz``, ``32.768 kHz``.

    The unit is the largest of which there is at least one, and no digit is lost. Numbers from 1,000 on, in the largest
    unit, have commas, which project files do not accept.
    """
    return _scaled(frequency, ((10**6, "MHz"), (10**3, "kHz"), (1, "Hz")))


def duration_text(nanoseconds: int) -> str:
    """Return a time exactly, in a readable unit: ``40 ms``, ``1.5 s``.

    The unit is the largest of which there is at least one, and no digit is lost. Numbers from 1,000 on, in the largest
    unit, have commas, which project files do not accept.
    """
    return _scaled(nanoseconds, ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns")))


def latency_text(nanoseconds: float) -> str:
    """Return a measured or modelled time with three decimals: ``39.871 ms``."""
    return f"{nanoseconds / 10**6:,.3f} ms" if nanoseconds >= 10**6 else f"{nanoseconds / 10**3:,.3f} us"


def _scaled(value: int, units: Sequence[tuple[int, str]]) -> str:
    unit, name = next(((unit, name) for unit, name in units if value >= unit), units[-1])
    return f"{Decimal(value) / unit:,f} {name}"
