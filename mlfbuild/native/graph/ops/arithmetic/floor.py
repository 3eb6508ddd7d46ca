"""FLOOR, CEIL and ROUND of float32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import OnlyFloat
from mlfbuild.native.graph.tensors import Array


class Floor(OnlyFloat):
    """The greatest integer that is not greater."""

    name = "FLOOR"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.floor(value)


class Ceil(OnlyFloat):
    """The least integer that is not less."""

    name = "CEIL"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.ceil(value)


class Round(OnlyFloat):
    """The nearest integer, half to even."""

    name = "ROUND"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.rint(value)
