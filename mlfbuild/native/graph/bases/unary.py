"""Base classes of operators that compute each element of the output from one element of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.single import Single
from mlfbuild.native.graph.quantize import integer_range
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

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
