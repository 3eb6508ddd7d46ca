"""SIN and COS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import OnlyFloat
from mlfbuild.native.graph.tensors import Array


@dataclass(frozen=True)
class Sin(OnlyFloat):
    """The sine."""

    name: ClassVar[str] = "SIN"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.sin(value)


@dataclass(frozen=True)
class Cos(OnlyFloat):
    """The cosine."""

    name: ClassVar[str] = "COS"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.cos(value)
