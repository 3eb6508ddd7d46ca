"""ASIN, ACOS, ATAN and the hyperbolic functions SINH, COSH, ASINH, ACOSH and ATANH of float32."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.bases.unary import OnlyFloat


class Asin(OnlyFloat):
    """The angle with this sine; NaN outside of -1 to 1."""

    name = "ASIN"
    function = np.arcsin


class Acos(OnlyFloat):
    """The angle with this cosine; NaN outside of -1 to 1."""

    name = "ACOS"
    function = np.arccos


class Atan(OnlyFloat):
    """The angle with this tangent."""

    name = "ATAN"
    function = np.arctan


class Sinh(OnlyFloat):
    """The hyperbolic sine."""

    name = "SINH"
    function = np.sinh


class Cosh(OnlyFloat):
    """The hyperbolic cosine."""

    name = "COSH"
    function = np.cosh


class Asinh(OnlyFloat):
    """The number with this hyperbolic sine."""

    name = "ASINH"
    function = np.arcsinh


class Acosh(OnlyFloat):
    """The positive number with this hyperbolic cosine; NaN below 1."""

    name = "ACOSH"
    function = np.arccosh


class Atanh(OnlyFloat):
    """The number with this hyperbolic tangent; NaN outside of -1 to 1."""

    name = "ATANH"
    function = np.arctanh
