"""ABS, NEG and SIGN."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases.unary import Unary, Whole
from mlfbuild.native.graph.ops.activation.relu import rescaled
from mlfbuild.native.graph.quantize import Rescale, requantize_rescale, zero_point_of
from mlfbuild.native.graph.rescales import ratio_rescale
from mlfbuild.native.graph.tensors import Array, DType, Tensor


class Abs(Unary):
    """The absolute value."""

    name = "ABS"
    types = (DType.INT8, DType.INT16, DType.INT32, DType.FLOAT32)

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        return rescaled(np.abs(value), self.rescale(source, output)) + zero_point_of(output)

    def rescale(self, source: Tensor, output: Tensor) -> Rescale:
        """Return the rescaling of an absolute value to the output's scale; raises ``OverflowError``."""
        return requantize_rescale(source, output)

    def _whole(self, value: Whole) -> Whole:
        return np.asarray(np.abs(value))

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.abs(value)


class Neg(Unary):
    """The negated value, rescaled to the output; the least int32 or int64 is its own negative."""

    name = "NEG"
    types = (DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32)

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        return rescaled(-value, self.rescale(source, output)) + zero_point_of(output)

    def rescale(self, source: Tensor, output: Tensor) -> Rescale:
        """Return the rescaling of a value to the output's scale; raises ``OverflowError``."""
        return ratio_rescale(source, output)

    def _whole(self, value: Whole) -> Whole:
        return np.asarray(-value)

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return -value


class Sign(Unary):
    """-1, 0 or 1."""

    name = "SIGN"
    types = (DType.INT32, DType.FLOAT32)

    def _whole(self, value: Whole) -> Whole:
        return np.asarray(np.sign(value))

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.sign(value)
