"""GELU; for int8 with a table that is computed in float32."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import Tabulated
from mlfbuild.native.graph.lookup_table import Floats
from mlfbuild.native.graph.tensors import Array, DType, Tensor

# sqrt(2 / pi) and 0.044715 are those of Hendrycks and Gimpel's tanh approximation of GELU.
_ROOT = math.sqrt(2 / math.pi)
_CUBIC = 0.044715


class Gelu(Tabulated):
    """x times the normal cumulative distribution of x, or its tanh approximation if ``approximate``."""

    approximate: bool = False

    name = "GELU"
    types = (DType.INT8, DType.FLOAT32)

    def _defined(self, real: Floats, output: Tensor) -> Floats:
        """Compute in float32 with the same steps as LiteRT for its table."""
        half = np.float32(0.5) * real
        if not self.approximate:
            # 0.5 * x * erfc(-x / sqrt(2)) is GELU; erfc keeps its precision for negative x, where 1 + erf cancels.
            return np.asarray(half * _erfc(real * np.float32(-math.sqrt(0.5))).astype(np.float32))
        inner = np.float32(_ROOT) * (real + np.float32(_CUBIC) * real * real * real)
        return np.asarray(half * (np.float32(1) + np.tanh(inner.astype(np.float64)).astype(np.float32)))

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        if not self.approximate:
            return np.asarray(0.5 * value * _erfc(value * -math.sqrt(0.5)))
        return np.asarray(0.5 * value * (1 + np.tanh(_ROOT * (value + _CUBIC * value**3))))


def _erfc(value: Array) -> npt.NDArray[np.float64]:
    return np.array([math.erfc(x) for x in value.reshape(-1).tolist()], np.float64).reshape(value.shape)
