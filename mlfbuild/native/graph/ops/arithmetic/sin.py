"""SIN and COS."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.bases.unary import OnlyFloat


class Sin(OnlyFloat):
    """The sine."""

    name = "SIN"
    function = np.sin


class Cos(OnlyFloat):
    """The cosine."""

    name = "COS"
    function = np.cos
