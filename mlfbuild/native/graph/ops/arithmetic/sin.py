"""SIN and COS."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import OnlyFloat
from mlfbuild.native.graph.tensors import Array


class Sin(OnlyFloat):
    """The sine."""

    name = "SIN"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.sin(value)


class Cos(OnlyFloat):
    """The cosine."""

    name = "COS"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.cos(value)
