"""FLOOR, CEIL and ROUND of float32."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.bases.unary import OnlyFloat


class Floor(OnlyFloat):
    """The greatest integer that is not greater."""

    name = "FLOOR"
    function = np.floor


class Ceil(OnlyFloat):
    """The least integer that is not less."""

    name = "CEIL"
    function = np.ceil


class Round(OnlyFloat):
    """The nearest integer, half to even."""

    name = "ROUND"
    function = np.rint
