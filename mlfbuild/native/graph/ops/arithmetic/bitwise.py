"""BITWISE_AND, BITWISE_OR, BITWISE_XOR, LEFT_SHIFT and RIGHT_SHIFT: operators on the bits of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.native.graph.bases.binary import WHOLE, Binary
from mlfbuild.native.graph.tensors import Array, DType


@dataclass(frozen=True)
class BitwiseAnd(Binary):
    """The bits that are set in both elements."""

    name: ClassVar[str] = "BITWISE_AND"
    types: ClassVar[tuple[DType, ...]] = WHOLE

    def _real(self, x: Array, y: Array) -> Array:
        return np.bitwise_and(x, y)


@dataclass(frozen=True)
class BitwiseOr(Binary):
    """The bits that are set in at least one of two elements."""

    name: ClassVar[str] = "BITWISE_OR"
    types: ClassVar[tuple[DType, ...]] = WHOLE

    def _real(self, x: Array, y: Array) -> Array:
        return np.bitwise_or(x, y)


@dataclass(frozen=True)
class BitwiseXor(Binary):
    """The bits that are set in exactly one of two elements."""

    name: ClassVar[str] = "BITWISE_XOR"
    types: ClassVar[tuple[DType, ...]] = WHOLE

    def _real(self, x: Array, y: Array) -> Array:
        return np.bitwise_xor(x, y)


@dataclass(frozen=True)
class LeftShift(Binary):
    """The bits of x moved up by y places, or by none if y is negative; 0 if none of them is left."""

    name: ClassVar[str] = "LEFT_SHIFT"
    types: ClassVar[tuple[DType, ...]] = WHOLE

    # Shifts beyond the width are undefined in C, so that the result of the operator is defined here.
    def _real(self, x: Array, y: Array) -> Array:
        return np.where(y < x.itemsize * 8, x << np.clip(y, 0, x.itemsize * 8 - 1), 0)


@dataclass(frozen=True)
class RightShift(Binary):
    """The bits of x moved down by y places, or by none if y is negative, with copies of the sign above them."""

    name: ClassVar[str] = "RIGHT_SHIFT"
    types: ClassVar[tuple[DType, ...]] = WHOLE

    def _real(self, x: Array, y: Array) -> Array:
        # A shift by all bits but one leaves only copies of the sign, so that longer ones need no case.
        return np.asarray(np.right_shift(x, np.clip(y, 0, x.itemsize * 8 - 1)))
