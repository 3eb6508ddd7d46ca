"""Format numbers, sizes, shapes and differences for the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from mlfbuild.report.document.compare import Change

NONE = "\N{EN DASH}"
"""Shown for an unknown number."""
_MINUS = "\N{MINUS SIGN}"
_KIB = 1024


def count(value: int | None) -> str:
    """Return a number with separators of thousands."""
    return NONE if value is None else f"{value:,}"


def compact(value: int) -> str:
    """Return a number in three digits or fewer, for axes: ``4.7 M``."""
    for unit, name in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        # 999,500 rounds to three digits of the next unit.
        if value >= unit - unit // 2000:
            return f"{value / unit:.3g}{name}"
    return str(value)


def size(value: int) -> str:
    """Return a number of bytes, also in KiB from 1 KiB on.

    For example, ``size(2048)`` is ``2,048 bytes (2.0 KiB)``.
    """
    unit = "byte" if value == 1 else "bytes"
    return f"{value:,} {unit}" if value < _KIB else f"{value:,} {unit} ({value / _KIB:,.1f} KiB)"


def ratio(value: float | None) -> str:
    """Return a ratio with two decimals, a large one with one."""
    if value is None:
        return NONE
    return f"{value:.2f}" if value < 10 else f"{value:,.1f}"


def share(part: int, whole: int) -> str:
    """Return ``part`` in per cent of ``whole``, which may be 0."""
    return f"{100 * part / whole:.1f} %" if whole else NONE


def value(found: Any) -> str:
    """Return the value of an attribute: lists as products."""
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, float):
        return f"{found:.6g}"
    if isinstance(found, (list, tuple)):
        nested = any(isinstance(part, (list, tuple)) for part in found)
        return (", " if nested else " \N{MULTIPLICATION SIGN} ").join(value(part) for part in found)
    return str(found)


def span(ends: Sequence[float]) -> str:
    """Return one number, or the least and the greatest."""
    least, greatest = ends[0], ends[-1]
    return f"{least:.6g}" if least == greatest else f"{least:.6g} to {greatest:.6g}"


def shape(dimensions: Iterable[int]) -> str:
    """Return a shape as a product, or ``scalar`` without dimensions."""
    return "\N{MULTIPLICATION SIGN}".join(str(size) for size in dimensions) or "scalar"


def per_cent(part: float, whole: float) -> str:
    """Return a length for SVG: ``part`` of ``whole``, which may be 0, with three decimals."""
    # Three decimals are less than a pixel on any screen; more would only make the page larger.
    text = f"{100 * part / whole:.3f}" if whole else "0"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}%"


def shorter(text: str, most: int) -> str:
    """Return a name, without its middle if it has more than ``most`` characters."""
    keep = most - 1
    return text if len(text) <= most else f"{text[: keep // 2]}…{text[len(text) - (keep - keep // 2) :]}"


def short_name(name: str) -> str:
    """Return, for each operator of a chain, the first of the names that a converter joined by semicolons."""
    return " + ".join(part.split(";", 1)[0] for part in name.split(" + "))


def ending(text: str, most: int) -> str:
    """Return a name, or its end if it has more than ``most`` characters: names often begin with that of the network."""
    return text if len(text) <= most else f"…{text[len(text) - most + 1 :]}"


def step(part: int | None, largest: int) -> int:
    """Return ``part`` in whole per cent of ``largest``, for the classes of bars; at least 1 unless it is 0."""
    return max(1, round(100 * part / largest)) if part and largest else 0


def signed(value: int) -> str:
    """Return a number with its sign."""
    return f"{_MINUS if value < 0 else '+' if value else ''}{abs(value):,}"


def sign(change: Change) -> str:
    """Return ``more``, ``less`` or ``same``."""
    return "more" if change.more > 0 else "less" if change.more < 0 else "same"


def change_text(change: Change) -> str:
    """Return a change as ``+4,112 (+30.4 %)``; without the percentage if the old number is 0 or missing."""
    if change.more == 0:
        return "same"
    if not change.before:
        return signed(change.more)
    part = f"{abs(100 * change.more / change.before):,.1f} %"
    return f"{signed(change.more)} ({_MINUS if change.more < 0 else '+'}{part})"
