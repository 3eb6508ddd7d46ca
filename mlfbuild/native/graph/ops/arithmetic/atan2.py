"""ATAN2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases.binary import Binary, binary_tensors
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor


class Atan2(Binary):
    """The angle of the point (second input, first input), from -pi to pi, like ``atan2`` of C."""

    name = "ATAN2"
    types = (DType.FLOAT32,)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        reason = super().check(inputs, outputs)
        if reason is not None:
            return reason
        first, second, _ = binary_tensors(inputs, outputs)
        # LiteRT does not broadcast, and reads other elements if shapes differ.
        return None if first.shape == second.shape else f"the shapes of {first} and {second} differ"

    def _real(self, x: Array, y: Array) -> Array:
        return np.arctan2(x.astype(np.float64), y.astype(np.float64))
