"""ASIN, ACOS, ATAN and the hyperbolic functions SINH, COSH, ASINH, ACOSH and ATANH of float32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import OnlyFloat
from mlfbuild.native.graph.tensors import Array


class Asin(OnlyFloat):
    """The angle with this sine; NaN outside of -1 to 1."""

    name = "ASIN"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arcsin(value)


class Acos(OnlyFloat):
    """The angle with this cosine; NaN outside of -1 to 1."""

    name = "ACOS"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arccos(value)


class Atan(OnlyFloat):
    """The angle with this tangent."""

    name = "ATAN"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arctan(value)


class Sinh(OnlyFloat):
    """The hyperbolic sine."""

    name = "SINH"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.sinh(value)


class Cosh(OnlyFloat):
    """The hyperbolic cosine."""

    name = "COSH"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.cosh(value)


class Asinh(OnlyFloat):
    """The number with this hyperbolic sine."""

    name = "ASINH"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arcsinh(value)


class Acosh(OnlyFloat):
    """The positive number with this hyperbolic cosine; NaN below 1."""

    name = "ACOSH"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arccosh(value)


class Atanh(OnlyFloat):
    """The number with this hyperbolic tangent; NaN outside of -1 to 1."""

    name = "ATANH"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.arctanh(value)
