"""ASIN, ACOS, ATAN and the hyperbolic functions SINH, COSH, ASINH, ACOSH and ATANH of float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import OnlyFloat
from mlfbuild.native.graph.tensors import Array


@dataclass(frozen=True)
class Asin(OnlyFloat):
    """The angle with this sine; NaN outside of -1 to 1."""

    name: ClassVar[str] = "ASIN"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arcsin(value)


@dataclass(frozen=True)
class Acos(OnlyFloat):
    """The angle with this cosine; NaN outside of -1 to 1."""

    name: ClassVar[str] = "ACOS"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arccos(value)


@dataclass(frozen=True)
class Atan(OnlyFloat):
    """The angle with this tangent."""

    name: ClassVar[str] = "ATAN"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arctan(value)


@dataclass(frozen=True)
class Sinh(OnlyFloat):
    """The hyperbolic sine."""

    name: ClassVar[str] = "SINH"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.sinh(value)


@dataclass(frozen=True)
class Cosh(OnlyFloat):
    """The hyperbolic cosine."""

    name: ClassVar[str] = "COSH"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.cosh(value)


@dataclass(frozen=True)
class Asinh(OnlyFloat):
    """The number with this hyperbolic sine."""

    name: ClassVar[str] = "ASINH"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arcsinh(value)


@dataclass(frozen=True)
class Acosh(OnlyFloat):
    """The positive number with this hyperbolic cosine; NaN below 1."""

    name: ClassVar[str] = "ACOSH"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arccosh(value)


@dataclass(frozen=True)
class Atanh(OnlyFloat):
    """The number with this hyperbolic tangent; NaN outside of -1 to 1."""

    name: ClassVar[str] = "ATANH"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arctanh(value)
