"""FLOOR_DIV and FLOOR_MOD: a quotient rounded down, and its remainder."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.bases.binary import WHOLE, Binary
from mlfbuild.native.graph.tensors import Array, DType


class FloorDiv(Binary):
    """The greatest integer that is not greater than x / y; 0 if an int32 is divided by 0."""

    name = "FLOOR_DIV"
    types = (DType.INT32, DType.FLOAT32)

    def _real(self, x: Array, y: Array) -> Array:
        if x.dtype == np.float32:
            return np.asarray(np.floor(x.astype(np.float64) / y.astype(np.float64)), np.float32)
        wide = x.astype(np.int64) // np.where(y == 0, np.int64(1), y)
        return np.where(y == 0, 0, wide).astype(x.dtype)  # the least value wraps, because its negative does not fit


class FloorMod(Binary):
    """x minus y times the quotient rounded down, with the sign of y; 0 if an integer is divided by 0."""

    name = "FLOOR_MOD"
    types = (*WHOLE, DType.FLOAT32)

    def _real(self, x: Array, y: Array) -> Array:
        if x.dtype == np.float32:
            # fmod of C has the sign of the dividend; a rest of the other sign is moved to that of the divisor.
            rest = np.fmod(x, y)
            return np.where((rest != 0) & ((y < 0) != (rest < 0)), rest + y, rest)
        return np.where(y == 0, 0, np.mod(x, np.where(y == 0, 1, y))).astype(x.dtype)
