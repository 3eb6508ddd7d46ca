"""Sizes, counts and percentages as people write them: ``96 KiB``, ``64k``, ``98304``; ``3.2 M``; ``2 %``."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from mlfbuild.core import counted
from mlfbuild.project.problems import quoted

_NUMBER = re.compile(r"([0-9]+(?:_[0-9]+)*(?:\.[0-9]+)?) ?([A-Za-z]*)")
_SIZES = {"": 1, "b": 1, **{f"{prefix}{rest}": 1024**power for power, prefix in enumerate("kmg", 1)
                            for rest in ("", "b", "ib")}}  # fmt: skip
_COUNTS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_LARGEST = 1 << 62
_PERCENT = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,3})?) ?%")


def _schema(units: str) -> dict[str, Any]:
    pattern = rf"^[0-9_]+(\.[0-9]+)? ?{units}$"
    return {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": pattern}]}


SIZE_SCHEMA = _schema("([KkMmGg]?([Ii]?[Bb])?)")
COUNT_SCHEMA = _schema("[KkMmGg]?")
"""A size and a count as JSON Schema."""
PERCENT_SCHEMA = {"type": "string", "pattern": rf"^{_PERCENT.pattern}$"}


def parse_size(text: str) -> int | None:
    """Return the bytes that ``text`` means; ``None`` where it is no size.

    K, M and G are 1024 and its powers, with or without ``iB`` or ``B``, in small letters or capitals.
    """
    return _parsed(text, _SIZES)


def parse_count(text: str) -> int | None:
    """Return the number that ``text`` means; ``None`` where it is none. K, M and G are 1000 and its powers."""
    return _parsed(text, _COUNTS)


def parse_percent(text: str) -> Decimal | None:
    """Return the 2.5 of ``2.5 %``, exactly; ``None`` where ``text`` is no percentage.

    The sign is needed: a bare 0.02 may be meant as 2 % by one reader and as 0.02 % by another.
    """
    found = _PERCENT.fullmatch(text.strip())
    return None if found is None else Decimal(found[1])


def _parsed(text: str, units: dict[str, int]) -> int | None:
    found = _NUMBER.fullmatch(text.strip())
    if found is None or found[2].lower() not in units:
        return None
    value = Fraction(found[1].replace("_", "")) * units[found[2].lower()]
    return int(value) if value.denominator == 1 and value < _LARGEST else None


def size_value(value: object) -> object:
    """Return a value of a project file as bytes; raises ``ValueError`` with the reason where it is no size."""
    return _value(value, parse_size, "a size: 98304, 96 KiB or 96k")


def count_value(value: object) -> object:
    """Return a value of a project file as a number; raises ``ValueError`` with the reason where it is none."""
    return _value(value, parse_count, "a number: 3200000, 3.2 M or 300k")


def _value(value: object, parse: Callable[[str], int | None], wanted: str) -> object:
    found = parse(value) if isinstance(value, str) else value
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise _refusal(value, wanted)
    return found


def percent_value(value: object) -> Decimal:
    """Return a value of a project file as per cent; raises ``ValueError`` with the reason where it is none."""
    found = parse_percent(value) if isinstance(value, str) else None
    if found is None:
        raise _refusal(value, "a percentage: 2 % or 0.5 %")
    return found


def _refusal(value: object, wanted: str) -> ValueError:
    shown = quoted(value) if isinstance(value, str) else str(value).lower() if value is not None else "nothing"
    return ValueError(f"{shown} is not {wanted}")


def size_text(size: int) -> str:
    """Return bytes as people read them, with the exact number: ``98,304 bytes (96 KiB)``."""
    if abs(size) < 1024:
        return counted(size, "byte")
    unit, name = (1024, "KiB") if abs(size) < 1024**2 else (1024**2, "MiB")
    rounded = f"{size / unit:.1f}".removesuffix(".0")
    return f"{size:,} bytes ({rounded} {name})"
