"""Base classes of operators on two tensors, whose shapes broadcast as in numpy."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.accumulate import Sums, centred, finish_float, finish_quantized
from mlfbuild.native.graph.operator import Activation, Operator
from mlfbuild.native.graph.quantize import activation_range, whole_activation_range
from mlfbuild.native.graph.rescales import BinaryRescales
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

WHOLE = (DType.INT32, DType.INT64)
"""Integer types without scale and zero point."""


class Binary(Operator):
    """Each element of the output is computed from one element of each input."""

    function: ClassVar[np.ufunc]
    """The numpy function of elements that are not quantised, if there is one."""

    types: ClassVar[tuple[DType, ...]] = (DType.INT8, DType.INT16, DType.FLOAT32)

    @rules.takes(2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        first, second, output = binary_tensors(inputs, outputs)
        return (
            # Types first: the checks of shapes and scales assume that all three tensors have the same kind.
            self._check_types(first, second, output)
            or rules.broadcast((first, second), output)
            or (self._check_quantization(first, second, output) if first.dtype in rules.QUANTIZED else None)
        )

    def _check_types(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        return rules.arithmetic(first, second, output, types=self.types)

    def _check_quantization(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        """Return why the scales of quantised tensors are not supported, or ``None``."""
        return None

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        first, second, output = binary_tensors(inputs, outputs)
        x, y = values
        # Integer division by 0, overflow and NaN are results here and not mistakes of the compiler.
        with np.errstate(all="ignore"):
            if first.dtype in rules.QUANTIZED:
                result = self._quantized((first, second, output), centred(first, x), centred(second, y))
            else:
                result = self._real(x, y)
        return (np.asarray(result, output.dtype.numpy),)

    def _quantized(self, tensors: tuple[Tensor, Tensor, Tensor], x: Sums, y: Sums) -> Array:
        """Return the stored result for ``x`` and ``y``, stored values without their zero points."""
        raise TypeError(f"{self.name} is not quantised")

    def _real(self, x: Array, y: Array) -> Array:
        """Return the result for ``x`` and ``y`` that are not quantised."""
        return np.asarray(self.function(x, y))


class Arithmetic(Binary):
    """A binary operator with a fused activation."""

    activation: Activation = Activation.NONE

    def _check_quantization(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        # By computing them: each factor has its own limits, which only its own formula knows.
        return rules.computable(
            lambda: self.numbers(first, second, output), lambda: activation_range(self.activation, output)
        )

    def numbers(self, first: Tensor, second: Tensor, output: Tensor) -> object:
        """Return the multipliers and shifts of quantised tensors; raises ``OverflowError`` if they do not exist."""
        raise TypeError(f"{self.name} is not quantised")

    def _real(self, x: Array, y: Array) -> Array:
        if x.dtype == np.float32:
            # Sums, products and quotients of float32 in double, rounded to float32, are those that float32 itself has:
            # 53 bits are enough for a second rounding of 24 bits to change nothing.
            return finish_float(self._exact(x.astype(np.float64), y.astype(np.float64)), self.activation)
        whole = np.asarray(self._whole(x, y), x.dtype)
        return np.asarray(np.clip(whole, *whole_activation_range(self.activation, DType(x.dtype.name))))

    def _whole(self, x: Array, y: Array) -> Array:
        """Return the result for integers that are not quantised; it wraps in their type."""
        return self._exact(x, y)

    @abc.abstractmethod
    def _exact(self, x: Array, y: Array) -> Array:
        """Return the result for real ``x`` and ``y``."""


def binary_tensors(inputs: Inputs, outputs: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return (first, second, output) of a node with checked operands.

    For the methods of operators: ``check`` has accepted the operands, so nothing is raised here.
    """
    first, second = inputs
    return first, second, outputs[0]


def on_one_scale(
    tensors: tuple[Tensor, Tensor, Tensor],
    x: Sums,
    y: Sums,
    rescales: BinaryRescales,
    left_shift: int,
    combine: Callable[[Sums, Sums], Sums],
    activation: Activation = Activation.NONE,
) -> Array:
    """Return the stored result of ``combine`` on ``x`` and ``y``, which are shifted left and brought to one scale.

    ``x`` and ``y`` are stored values without their zero points; ``left_shift`` is in bits, and the factors of
    ``rescales`` must include it. The result is clamped by ``activation`` and has the type of the output.
    """
    x, y = (
        # As in ADD of TFLite: the shift left leaves fraction bits, so that the rounding to the common scale loses
        # little.
        rescale.apply(value * (1 << left_shift)).astype(np.float64)
        for value, rescale in zip((x, y), rescales.inputs, strict=True)
    )
    # The order is TensorFlow Lite Micro's: both inputs are rounded to the common scale before they are combined.
    return finish_quantized(np.asarray(combine(x, y)), [rescales.output], tensors[2], activation)
