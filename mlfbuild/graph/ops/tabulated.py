"""EXP, LOG, SQRT, SIN and COS: of quantised values by way of float32, which leads to a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.graph.lookup_table import Floats, look_up, lookup_table
from mlfbuild.graph.ops.unary import OnlyFloat, Unary, Whole
from mlfbuild.graph.quantize import integer_range, round_half_away, scale_of, zero_point_of
from mlfbuild.graph.types import Array, DType, Tensor


@dataclass(frozen=True)
class Tabulated(Unary):
    """A function that is tabulated: int8 value by value, int16 with lines between."""

    types: ClassVar[tuple[DType, ...]] = (DType.INT8, DType.INT16, DType.FLOAT32)

    def table(self, source: Tensor, output: Tensor) -> npt.NDArray[np.int16]:
        """Return the table of int16 values; raises as ``lookup_table``."""
        scales = scale_of(source), zero_point_of(source), scale_of(output), zero_point_of(output)
        return lookup_table(lambda real: self._defined(real, output), *scales)

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        if source.dtype is DType.INT16:
            return look_up(self.table(source, output), value)
        with np.errstate(all="ignore"):
            real = np.float32(scale_of(source)) * value.astype(np.float32)
            return stored_of(self._defined(real, output) * inverse_scale(output), output)

    def _defined(self, real: Floats, output: Tensor) -> Floats:
        """Return the function of float32 numbers, and a number where it is not defined."""
        return self._real(real.astype(np.float64)).astype(np.float32)


@dataclass(frozen=True)
class Exp(Tabulated):
    """The exponential."""

    name: ClassVar[str] = "EXP"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.exp(value)


@dataclass(frozen=True)
class Log(Tabulated):
    """The natural logarithm; the least value that can be stored where there is none."""

    name: ClassVar[str] = "LOG"

    def _defined(self, real: Floats, output: Tensor) -> Floats:
        lowest = np.float32(integer_range(output.dtype)[0] - zero_point_of(output)) * np.float32(scale_of(output))
        with np.errstate(all="ignore"):
            return np.where(real <= 0, lowest, super()._defined(real, output)).astype(np.float32)

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.log(value)


@dataclass(frozen=True)
class Sqrt(Unary):
    """The square root; of quantised values cut towards zero, and 0 where there is none."""

    name: ClassVar[str] = "SQRT"
    types: ClassVar[tuple[DType, ...]] = (DType.INT8, DType.INT16, DType.FLOAT32)

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        with np.errstate(all="ignore"):
            real = np.float32(scale_of(source)) * np.maximum(value, 0).astype(np.float32)
            return stored_of(np.trunc(np.sqrt(real) / np.float32(scale_of(output))), output)

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.sqrt(value)


@dataclass(frozen=True)
class Sin(OnlyFloat):
    """The sine."""

    name: ClassVar[str] = "SIN"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.sin(value)


@dataclass(frozen=True)
class Cos(OnlyFloat):
    """The cosine."""

    name: ClassVar[str] = "COS"

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        return np.cos(value)


def inverse_scale(output: Tensor) -> np.float32:
    """Return the reciprocal of the scale of ``output``; raises ``OverflowError`` where it is no float32."""
    with np.errstate(all="ignore"):
        inverse: np.float32 = np.float32(1) / np.float32(scale_of(output))
    if not np.isfinite(inverse):
        raise OverflowError(f"the output's scale {scale_of(output):g} is too small")
    return inverse


def stored_of(scaled: Floats, output: Tensor) -> Whole:
    """Return ``scaled`` float32 numbers, rounded half away from zero, with the output's zero point and in its type."""
    bounded = np.clip(round_half_away(scaled), -(2.0**30), 2.0**30).astype(np.int64)
    return np.asarray(np.clip(bounded + zero_point_of(output), *integer_range(output.dtype)), np.int64)
