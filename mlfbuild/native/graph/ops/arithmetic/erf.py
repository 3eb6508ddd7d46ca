"""ERF: the error function, on which GELU is based."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import OnlyFloat
from mlfbuild.native.graph.tensors import Array


class Erf(OnlyFloat):
    """The error function, 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to the value.

    Not an operator of TFLite, but of ONNX.
    """

    name = "ERF"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.array([math.erf(x) for x in value.reshape(-1).tolist()], np.float64).reshape(value.shape)
