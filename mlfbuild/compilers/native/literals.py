"""Python and numpy values as C literals, arrays of them quickly and in short lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from mlfbuild.graph import Array

_NAMED = {-(1 << 31): "INT32_MIN", -(1 << 63): "INT64_MIN"}
"""The least values of types, which have no literal of their own type."""


def integer(value: int) -> str:
    """Return an int64 value as a C literal, of type int where 32 bits hold it."""
    if value in _NAMED:
        return _NAMED[value]
    return str(int(value)) if -(1 << 31) < value < 1 << 31 else f"INT64_C({value})"


def floating(value: float) -> str:
    """Return a float32 value as the shortest C literal that reads back as the same value."""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{np.float32(value)!s}f"


def braces(values: Sequence[int]) -> str:
    """Return integers as an initialiser on one line: ``{1, 2}``."""
    return f"{{{', '.join(integer(value) for value in values)}}}"


def array_lines(values: Array) -> Iterator[str]:
    """Yield the elements of an array, in memory order, as indented lines of an initialiser."""
    flat = values.reshape(-1)
    if flat.dtype == np.float32:
        return _lines(_float_literals(flat), 7)
    if flat.dtype.itemsize == 8:
        return _lines([f"INT64_C({value})" for value in flat.tolist()], 4)
    return _lines([integer(value) for value in flat.tolist()], 24 if flat.dtype.itemsize == 1 else 9)


def record_lines(records: Sequence[str], per_line: int) -> Iterator[str]:
    """Yield initialisers of structs as indented lines of ``per_line`` of them."""
    return _lines(records, per_line)


def _lines(literals: Sequence[str], per_line: int) -> Iterator[str]:
    for start in range(0, len(literals), per_line):
        yield f"    {', '.join(literals[start : start + per_line])},"


def _float_literals(values: Array) -> list[str]:
    """Return what ``floating`` returns for each value; numpy makes the texts of a whole array much quicker."""
    if not np.isfinite(values).all():
        return [floating(value) for value in values]
    return [f"{text}f" for text in values.astype(str).tolist()]
