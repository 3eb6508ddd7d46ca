"""Base classes of operators with one input and one output.

``Unary`` computes each element of the output from one element of the input, ``Tabulated`` its quantised values from a
table that is computed in float32.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.library import round_half_away
from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.lookup_table import Floats, look_up, lookup_table
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.quantize import integer_range
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class Single(Operator):
    """An operator with one input and one output.

    Subclasses implement ``_check`` with both tensors, whose number is already right, and ``reference``.
    """

    @rules.takes(1)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        return self._check(inputs[0], outputs[0])

    @abc.abstractmethod
    def _check(self, source: Tensor, output: Tensor) -> str | None:
        """Return why ``source`` and ``output`` break the operator's shape and type rules, or ``None``."""


Whole = npt.NDArray[np.int64]


class Unary(Single):
    """Each element of the output is computed from the same element of the input, and has its type."""

    function: ClassVar[np.ufunc]
    """The numpy function of real numbers and of integers that are not quantised, if there is one."""

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.arithmetic(source, output, types=self.types)
            or rules.shape(output, source.shape)
            or (self._check_quantization(source, output) if source.dtype in rules.QUANTIZED else None)
        )

    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        """Return why the scales of quantised tensors are not supported; by default, if a computation overflows."""
        # One zero is enough: multipliers depend on the scales and not on the values.
        sample = np.zeros(1, np.int64)
        return rules.computable(lambda: self._quantized(source, output, sample))

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, output, value = inputs[0], outputs[0], values[0]
        if source.dtype in rules.QUANTIZED:
            stored = self._quantized(source, output, value.astype(np.int64) - source.affine.zero_point)
            # A function may leave its type: the clamp is part of every quantised kernel.
            return (np.clip(stored, *integer_range(output.dtype)).astype(output.dtype.numpy),)
        if source.dtype is not DType.FLOAT32:
            return (self._whole(value.astype(np.int64)).astype(output.dtype.numpy),)
        # Poles and domains: log(0) is -infinity and the square root of a negative number NaN, without a warning.
        with np.errstate(all="ignore"):
            return (np.asarray(self._real(value.astype(np.float64)), np.float32),)

    def _quantized(self, source: Tensor, output: Tensor, value: Whole) -> Whole:
        """Return the stored result, before it is clamped to the type, for stored values without their zero point.

        Raises ``OverflowError`` if the multipliers do not fit into 32 bits.
        """
        raise TypeError(f"{self.name} is not quantised")

    def _whole(self, value: Whole) -> Whole:
        """Return the result for integers that are not quantised; it wraps in their type."""
        return np.asarray(self.function(value))

    def _real(self, value: npt.NDArray[np.float64]) -> Array:
        """Return the result for real numbers."""
        return np.asarray(self.function(value))


class OnlyFloat(Unary):
    """A unary operator that supports only float32."""

    types = (DType.FLOAT32,)


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
