"""Base class of operators whose quantised values come from a table that is computed in float32."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.library import round_half_away
from mlfbuild.native.graph.bases.unary import Unary, Whole
from mlfbuild.native.graph.lookup_table import Floats, look_up, lookup_table
from mlfbuild.native.graph.quantize import integer_range
from mlfbuild.native.graph.tensors import DType, Tensor


class Tabulated(Unary):
    """A tabulated function: int8 has an entry per value, int16 is interpolated linearly."""

    types: ClassVar[tuple[DType, ...]] = (DType.INT8, DType.INT16, DType.FLOAT32)

    def table(self, source: Tensor, output: Tensor) -> npt.NDArray[np.int16]:
        """Return the table of int16 values; raises the errors of ``lookup_table``.

        513 entries of int16 for an int16 input. Raises ``OverflowError`` if float32 cannot represent a value.
        """
        scales = source.affine.scale, source.affine.zero_point, output.affine.scale, output.affine.zero_point
        # LiteRT's int16 table covers the whole range of the type, so that it depends on both scales and zero points.
        return lookup_table(lambda real: self._defined(real, output), *scales)

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        if source.dtype is DType.INT16:
            return look_up(self.table(source, output), value)
        # Functions have poles, and stored values near them: what is infinite is clamped to the range of the type.
        with np.errstate(all="ignore"):
            real = np.float32(source.affine.scale) * value.astype(np.float32)
            # LiteRT multiplies by the reciprocal, whose rounding differs from a division in the last bit.
            return stored_of(self._defined(real, output) * inverse_scale(output), output)

    def _defined(self, real: Floats, output: Tensor) -> Floats:
        """Return the function of float32 numbers, with a substitute where it is not defined."""
        return self._real(real.astype(np.float64)).astype(np.float32)


def inverse_scale(output: Tensor) -> np.float32:
    """Return the reciprocal of the scale of ``output``; raises ``OverflowError`` if float32 cannot represent it."""
    with np.errstate(all="ignore"):
        inverse: np.float32 = np.float32(1) / np.float32(output.affine.scale)
    if not np.isfinite(inverse):
        raise OverflowError(f"the output's scale {output.affine.scale:g} is too small")
    return inverse


def stored_of(scaled: Floats, output: Tensor) -> Whole:
    """Return ``scaled`` float32 numbers, rounded half away from zero, plus the output's zero point, in its range.

    The result is int64. Infinite numbers are clamped to the ends; callers have replaced NaN.
    """
    # Bounded before the conversion, since a double beyond int64 has no defined integer. 2**30 is outside any range.
    bounded = np.clip(round_half_away(scaled), -(2.0**30), 2.0**30).astype(np.int64)
    return np.asarray(np.clip(bounded + output.affine.zero_point, *integer_range(output.dtype)), np.int64)
