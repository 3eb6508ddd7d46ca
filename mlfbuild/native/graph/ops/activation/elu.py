"""ELU."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import Unary, Whole, inverse_scale, stored_of
from mlfbuild.native.graph.tensors import Array, Tensor


class Elu(Unary):
    """x if x >= 0, else exp(x) - 1; int8 is computed in float32."""

    name = "ELU"

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        with np.errstate(all="ignore"):
            # Both branches are computed, so that exp overflows where it is not used.
            real = np.float32(source.affine.scale) * value.astype(np.float32)
            # Rounded to float32 between the steps, as LiteRT's table of ELU is, where each step is a float operation.
            power = np.exp(real.astype(np.float64)).astype(np.float32) - np.float32(1)
            return stored_of(np.where(real < 0, power, real) * inverse_scale(output), output)

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.where(value < 0, np.expm1(value), value)
