"""Functions of int16 as tables with linear interpolation, as in TensorFlow Lite.

A table of 513 values is computed in float32 with the same operations as ``LUTPopulate``, because the roundings affect
the result. For LOGISTIC and TANH, TFLite tabulates 1 / (1 + exp(-i / 24)) with 16 fraction bits. Some values are not
rounded to nearest, to compensate for the error of linear interpolation; therefore that table is data, not a formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

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


# fmt: off
_VALUES = (
    32768, 33451, 34133, 34813, 35493, 36169, 36843, 37513, 38180, 38841, 39498, 40149, 40794, 41432, 42064, 42688,
    43304, 43912, 44511, 45102, 45683, 46255, 46817, 47369, 47911, 48443, 48964, 49475, 49975, 50464, 50942, 51409,
    51865, 52311, 52745, 53169, 53581, 53983, 54374, 54755, 55125, 55485, 55834, 56174, 56503, 56823, 57133, 57433,
    57724, 58007, 58280, 58544, 58800, 59048, 59288, 59519, 59743, 59959, 60168, 60370, 60565, 60753, 60935, 61110,
    61279, 61441, 61599, 61750, 61896, 62036, 62172, 62302, 62428, 62549, 62666, 62778, 62886, 62990, 63090, 63186,
    63279, 63368, 63454, 63536, 63615, 63691, 63765, 63835, 63903, 63968, 64030, 64090, 64148, 64204, 64257, 64308,
    64357, 64405, 64450, 64494, 64536, 64576, 64614, 64652, 64687, 64721, 64754, 64786, 64816, 64845, 64873, 64900,
    64926, 64950, 64974, 64997, 65019, 65039, 65060, 65079, 65097, 65115, 65132, 65149, 65164, 65179, 65194, 65208,
    65221, 65234, 65246, 65258, 65269, 65280, 65291, 65301, 65310, 65319, 65328, 65337, 65345, 65352, 65360, 65367,
    65374, 65381, 65387, 65393, 65399, 65404, 65410, 65415, 65420, 65425, 65429, 65433, 65438, 65442, 65445, 65449,
    65453, 65456, 65459, 65462, 65465, 65468, 65471, 65474, 65476, 65479, 65481, 65483, 65485, 65488, 65489, 65491,
    65493, 65495, 65497, 65498, 65500, 65501, 65503, 65504, 65505, 65507, 65508, 65509, 65510, 65511, 65512, 65513,
    65514, 65515, 65516, 65517, 65517, 65518, 65519, 65520, 65520, 65521, 65522, 65522, 65523, 65523, 65524, 65524,
    65525, 65525, 65526, 65526, 65526, 65527, 65527, 65528, 65528, 65528, 65529, 65529, 65529, 65529, 65530, 65530,
    65530, 65530, 65531, 65531, 65531, 65531, 65531, 65532, 65532, 65532, 65532, 65532, 65532, 65533, 65533, 65533,
    65533, 65533, 65533, 65533, 65533, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65534, 65535,
)
# fmt: on

LOGISTIC_TABLE = np.array(_VALUES, np.uint16)

_STEPS_OF_ONE = 3 << 12
"""Factor of the argument; a step of the table has 9 bits for LOGISTIC, 8 for TANH."""


@dataclass(frozen=True)
class TableScale:
    """The argument of a stored value is the value times ``multiplier`` / 2**``shift``, rounded."""

    multiplier: int
    shift: int


def table_scale(scale: float, most_doublings: int) -> TableScale:
    """Return the scaling for values of ``scale``; 2**-12 times up to ``most_doublings`` factors of 2 is exact.

    Raises ``OverflowError`` if the scale is so large that the multiplier does not fit into 16 bits.
    """
    exponent = math.log2(scale)
    doublings = round(exponent) + 12
    # The tolerance of CheckedLog2.
    if abs(exponent - round(exponent)) < 1e-3 and 0 <= doublings <= most_doublings:
        return TableScale(3 << doublings, 0)
    # Scaled so that the multiplier uses 15 bits: the kernel multiplies an int16 by it in 32 bits.
    multiplier, shift = scale * _STEPS_OF_ONE, 0
    if multiplier > (1 << 15) - 1:
        raise OverflowError(f"the input's scale {scale:g} is too large for a table of 16 bits")
    # LiteRT's loop has the same bounds, and each iteration doubles exactly.
    while multiplier <= ((1 << 15) - 1) / 2 and shift <= 30:
        multiplier *= 2
        shift += 1
    # Truncated, not rounded: TensorFlow Lite Micro casts the double to an integer.
    return TableScale(int(multiplier), shift)
