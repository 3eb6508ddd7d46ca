"""POW of float32 and of integers."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.bases.binary import WHOLE, Binary
from mlfbuild.native.graph.tensors import Array, DType


class Pow(Binary):
    """x to the power of y, like ``pow`` of C; NaN if x is negative and y has a fraction.

    Powers of integers wrap. A negative exponent gives 1 / x^-y without its fraction, and 0 for 0.
    """

    name = "POW"
    types = (*WHOLE, DType.FLOAT32)

    def _real(self, x: Array, y: Array) -> Array:
        if x.dtype == np.float32:
            # In double and rounded once: the pow of a C library may differ from it in the last bit.
            return np.power(x.astype(np.float64), y.astype(np.float64))
        x, y = np.broadcast_arrays(x, y)
        # Unsigned, because products wrap: the low bits are those of the narrower type, whatever the width.
        result, square = np.ones(x.shape, np.uint64), x.astype(np.int64).astype(np.uint64)
        rest = np.maximum(y.astype(np.int64), 0)
        while rest.any():
            result, square, rest = np.where(rest & 1, result * square, result), square * square, rest >> 1
        # 1 / x**n is a fraction below 1, without which 0 remains, unless x is 1 or -1.
        below = np.where(x == 1, 1, np.where(x == -1, np.where(y & 1, -1, 1), 0))
        return np.where(y < 0, below, result.astype(np.int64)).astype(x.dtype)
