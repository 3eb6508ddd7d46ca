"""FLOOR, CEIL and ROUND of float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import OnlyFloat
from mlfbuild.native.graph.tensors import Array


@dataclass(frozen=True)
class Floor(OnlyFloat):
    """The greatest integer that is not greater."""

    name: ClassVar[str] = "FLOOR"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.floor(value)


@dataclass(frozen=True)
class Ceil(OnlyFloat):
    """The least integer that is not less."""

    name: ClassVar[str] = "CEIL"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.ceil(value)


@dataclass(frozen=True)
class Round(OnlyFloat):
    """The nearest integer, half to even."""

    name: ClassVar[str] = "ROUND"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.rint(value)
