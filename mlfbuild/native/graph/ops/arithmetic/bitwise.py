"""BITWISE_AND, BITWISE_OR, BITWISE_XOR, LEFT_SHIFT and RIGHT_SHIFT: operators on the bits of integers."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.bases.binary import WHOLE, Binary
from mlfbuild.native.graph.tensors import Array


class OnBits(Binary):
    """An operator on the bits of two integers, which are stored as two's complements."""

    types = WHOLE


class BitwiseAnd(OnBits):
    """The bits that are set in both elements."""

    name = "BITWISE_AND"
    function = np.bitwise_and


class BitwiseOr(OnBits):
    """The bits that are set in at least one of two elements."""

    name = "BITWISE_OR"
    function = np.bitwise_or


class BitwiseXor(OnBits):
    """The bits that are set in exactly one of two elements."""

    name = "BITWISE_XOR"
    function = np.bitwise_xor


class LeftShift(OnBits):
    """The bits of x moved up by y places, or by none if y is negative; 0 if none of them is left."""

    name = "LEFT_SHIFT"

    # Shifts beyond the width are undefined in C, so that the result of the operator is defined here.
    def _real(self, x: Array, y: Array) -> Array:
        return np.where(y < x.itemsize * 8, x << np.clip(y, 0, x.itemsize * 8 - 1), 0)


class RightShift(OnBits):
    """The bits of x moved down by y places, or by none if y is negative, with copies of the sign above them."""

    name = "RIGHT_SHIFT"

    def _real(self, x: Array, y: Array) -> Array:
        # A shift by all bits but one leaves only copies of the sign, so that longer ones need no case.
        return np.asarray(np.right_shift(x, np.clip(y, 0, x.itemsize * 8 - 1)))
