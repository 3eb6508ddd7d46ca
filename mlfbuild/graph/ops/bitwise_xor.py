"""BITWISE_XOR."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.bases.binary import Binary
from mlfbuild.graph.types import Array, DType


@dataclass(frozen=True)
class BitwiseXor(Binary):
    """The bits that are set in exactly one of two elements."""

    name: ClassVar[str] = "BITWISE_XOR"
    types: ClassVar[tuple[DType, ...]] = (DType.INT32,)

    def _real(self, x: Array, y: Array) -> Array:
        return np.bitwise_xor(x, y)
