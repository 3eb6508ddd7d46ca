"""POW of float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.bases.binary import Binary
from mlfbuild.graph.types import Array, DType


@dataclass(frozen=True)
class Pow(Binary):
    """x to the power of y, like ``pow`` of C; NaN if x is negative and y has a fraction."""

    name: ClassVar[str] = "POW"
    types: ClassVar[tuple[DType, ...]] = (DType.FLOAT32,)

    def _real(self, x: Array, y: Array) -> Array:
        return np.power(x.astype(np.float64), y.astype(np.float64))
