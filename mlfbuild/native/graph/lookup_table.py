"""Functions of int16 as tables of 513 values with linear interpolation, as in TensorFlow Lite.

A table is computed in float32 with the same operations as ``LUTPopulate``, because the roundings affect the result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mlfbuild.library import round_half_away

Floats = npt.NDArray[np.float32]
Whole = npt.NDArray[np.int64]
Function = Callable[[Floats], Floats]

_STEPS = 512
_FRACTION_BITS = 7
"""Bits of a step of the table, of the 16 bits of its argument."""

_LEAST, _GREATEST = -(1 << 15), (1 << 15) - 1


def lookup_table(
    function: Function, scale: float, zero_point: int, output_scale: float, output_zero_point: int
) -> npt.NDArray[np.int16]:
    """Return the table of ``function``, whose argument and value have these scales and zero points.

    Each value is corrected by half the interpolation error at the midpoint. Raises ``OverflowError`` if float32 cannot
    represent a value.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
        # The whole range of int16, also if the network uses less of it: LiteRT's table has no other range.
        least, greatest = (np.float32(scale) * np.float32(bound - zero_point) for bound in (_LEAST, _GREATEST))
        low, high = (np.float32(output_scale) * np.float32(bound - output_zero_point) for bound in (_LEAST, _GREATEST))
        step = (greatest - least) / np.float32(_STEPS)
        # Values are stored without the output's zero point: 2**16 steps span the range of the type.
        inverse = np.float32(1 << 16) / (high - low)
        places = least + np.arange(_STEPS + 1, dtype=np.float32) * step
        values = function(places) * inverse
        # Interpolation is worst in the middle of two entries, so that its error there is halved by a shift of both.
        middles = round_half_away(function(places[:-1] + step / np.float32(2)) * inverse)
        rounded = round_half_away(values)
        between = round_half_away((values[1:] + rounded[:-1]) / np.float32(2))
        bias = round_half_away((between - middles) / np.float32(2))
        # The last entry has no midpoint behind it, and stays as it is.
        last = round_half_away(function(np.array([greatest])) * inverse)
        table = np.concatenate([rounded[:-1] - bias, last])
    if not np.isfinite(table).all():
        raise OverflowError(f"the function of a number of scale {scale:g} is no float32 of scale {output_scale:g}")
    # An entry beyond int16 saturates, as does the result of the function.
    return np.asarray(np.clip(table, _LEAST, _GREATEST), np.int16)


def look_up(table: npt.NDArray[np.int16], stored: Whole) -> Whole:
    """Interpolate ``table`` at ``stored`` int16 values; a slope wraps at 16 bits, as in C.

    ``table`` has 513 entries, from ``lookup_table``. The result is int64 with numbers of int16.
    """
    # The upper 9 bits of an int16 select the entry; -32768 is entry 0.
    index = (stored >> _FRACTION_BITS) + _STEPS // 2
    rest = stored & ((1 << _FRACTION_BITS) - 1)
    base = table[index].astype(np.int64)
    # The slope is an int16 in C: a table that jumps by more than 32767 gives wrong results there, and the same ones
    # here.
    slope = (table[index + 1].astype(np.int64) - base).astype(np.int16).astype(np.int64)
    result = base + ((slope * rest + (1 << _FRACTION_BITS >> 1)) >> _FRACTION_BITS)
    return np.asarray(result.astype(np.int16), np.int64)
