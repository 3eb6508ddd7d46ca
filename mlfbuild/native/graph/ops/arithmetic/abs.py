"""ABS, NEG and SIGN."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.bases.unary import Unary, Whole
from mlfbuild.native.graph.quantize import Rescale, requantize_rescale
from mlfbuild.native.graph.rescales import ratio_rescale
from mlfbuild.native.graph.tensors import DType, Tensor


class Abs(Unary):
    """The absolute value."""

    name = "ABS"
    types = (DType.INT8, DType.INT16, DType.INT32, DType.FLOAT32)
    function = np.abs

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        return self.rescale(source, output).apply(np.abs(value)) + output.affine.zero_point

    def rescale(self, source: Tensor, output: Tensor) -> Rescale:
        """Return the rescaling of an absolute value to the output's scale; raises ``OverflowError``."""
        return requantize_rescale(source, output)


class Neg(Unary):
    """The negated value, rescaled to the output; the least int32 or int64 is its own negative."""

    name = "NEG"
    types = (DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32)
    function = np.negative

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        return self.rescale(source, output).apply(-value) + output.affine.zero_point

    def rescale(self, source: Tensor, output: Tensor) -> Rescale:
        """Return the rescaling of a value to the output's scale; raises ``OverflowError``."""
        return ratio_rescale(source, output)


class Sign(Unary):
    """-1, 0 or 1."""

    name = "SIGN"
    types = (DType.INT32, DType.FLOAT32)
    function = np.sign
