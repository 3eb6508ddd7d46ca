"""Print Python and numpy values as C literals; arrays are printed quickly and in short lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from mlfbuild.core import lazy_module

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
else:
    np = lazy_module("numpy")

Array: TypeAlias = "npt.NDArray[Any]"

_NAMED = {-(1 << 31): "INT32_MIN", -(1 << 63): "INT64_MIN"}
"""The least values of types, for which C has no literal of that type."""
_ROWS = 4096
"""Lines that are printed at a time."""
_WORDS = 9
"""Hexadecimal words per line."""


def integer(value: int) -> str:
    """Return an int64 value as a C literal, of type int if it fits in 32 bits.

    Larger ones get ``INT64_C``, and the least values of both types their names in stdint.h, as C has no literals
    for them.
    """
    # -2147483648 in C is minus 2147483648, which is a long.
    if value in _NAMED:
        return _NAMED[value]
    return str(int(value)) if -(1 << 31) < value < 1 << 31 else f"INT64_C({value})"


def floating(value: float) -> str:
    """Return a float32 value as the shortest C literal that reads back as the same value.

    For example, ``0.1f``. NaN and infinities are the macros of math.h, whose header the caller includes.
    """
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{np.float32(value)!s}f"


def text(value: str) -> str:
    """Return a text as a C literal of its UTF-8 bytes, in ASCII and without trigraphs.

    The result has its quotes. Other than plain characters are octal escapes of three digits, which end before a
    digit that follows.
    """
    plain = (32 <= byte < 127 and chr(byte) not in '"\\?' for byte in value.encode())
    pairs = zip(value.encode(), plain, strict=True)
    return f'"{"".join(chr(byte) if printable else f"{chr(92)}{byte:03o}" for byte, printable in pairs)}"'


def braces(values: Sequence[int]) -> str:
    """Return integers as an initialiser on one line, such as ``{1, 2}``."""
    return f"{{{', '.join(integer(value) for value in values)}}}"


def array_lines(values: Array) -> Iterator[str]:
    """Yield the elements of an array, in memory order, as indented lines of an initialiser, many lines at a time.

    Types are bool, float32, and integers of 1 to 8 bytes; others would be printed wrongly. The caller prints the
    braces.
    """
    flat = values.reshape(-1)
    # Python would print True and False.
    if flat.dtype == np.bool_:
        flat = flat.view(np.int8)
    if flat.dtype == np.float32:
        width, lines = 7, _float_lines
    elif flat.dtype.itemsize == 8:
        width, lines = 4, partial(_lines, before="UINT64_C(", after=")") if flat.dtype == np.uint64 else _int64_lines
    else:
        lines = partial(_lines, before="", after="u") if flat.dtype == np.uint32 else _integer_lines
        width = 24 if flat.dtype.itemsize == 1 else 9
    for start in range(0, flat.size, width * _ROWS):
        part = flat[start : start + width * _ROWS]
        whole = part.size - part.size % width
        pieces = (part[:whole].reshape(-1, width), part[whole:].reshape(1, -1))
        yield "\n".join(line for piece in pieces if piece.size for line in lines(piece))


def hexadecimal_lines(values: Array) -> Iterator[str]:
    """Yield 32-bit elements of an array as ``array_lines``, but as unsigned hexadecimal constants.

    Zeros, which are most words of some networks, are printed as ``0``.
    """
    words = np.ascontiguousarray(values).reshape(-1).view(np.uint32).astype(">u4")
    for start in range(0, words.size, _WORDS * _ROWS):
        part = words[start : start + _WORDS * _ROWS]
        rows = (part[at : at + _WORDS].tobytes().hex(",", 4) for at in range(0, part.size, _WORDS))
        yield "\n".join(f"    0x{row.replace(',', 'u, 0x')}u," for row in rows).replace("0x00000000u", "0")


def record_lines(records: Sequence[str], per_line: int) -> Iterator[str]:
    """Yield initialisers of structs as indented lines, ``per_line`` on each.

    ``records`` are the texts of initialisers, with their braces. The caller prints the braces of the array.
    """
    for start in range(0, len(records), per_line):
        yield f"    {', '.join(records[start : start + per_line])},"


def _integer_lines(rows: Array) -> list[str]:
    """Return a line for each row; Python prints a whole list much faster than single numbers."""
    text = str(rows.tolist())[2:-2].replace(str(-(1 << 31)), _NAMED[-(1 << 31)])
    return [f"    {line}," for line in text.split("], [")]


def _lines(rows: Array, before: str, after: str) -> list[str]:
    """Return a line for each row, with ``before`` and ``after`` around each value."""
    return [f"    {before}{f'{after}, {before}'.join(row)}{after}," for row in rows.astype(str).tolist()]


def _int64_lines(rows: Array) -> list[str]:
    least = -(1 << 63)
    return [line.replace(f"INT64_C({least})", _NAMED[least]) for line in _lines(rows, "INT64_C(", ")")]


def _float_lines(rows: Array) -> list[str]:
    """Return a line for each row; values are printed as by ``floating``, but faster with whole arrays."""
    # numpy prints nan and inf.
    if not np.isfinite(rows).all():
        return [f"    {', '.join(map(floating, row))}," for row in rows]
    return _lines(rows, "", "f")
