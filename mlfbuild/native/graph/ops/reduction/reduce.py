"""MEAN, SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_ALL and REDUCE_ANY over some dimensions."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.accumulate import centred, finish_float, finish_quantized
from mlfbuild.native.graph.bases.binary import WHOLE
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.half_even import HalfEvenRescale, half_even_rescale, rescale_half_even
from mlfbuild.native.graph.operator import Activation
from mlfbuild.native.graph.quantize import Rescale, integer_range, mean_rescale, requantize_rescale
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class Reduction(Single):
    """Reduces ``axes`` (ascending, from 0), which are kept as dimensions of size 1 if ``keep_dims``."""

    axes: tuple[int, ...]
    keep_dims: bool = False

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.arithmetic(source, output, types=self.types)
            or self._check_axes(source)
            or rules.shape(output, self.output_shape(source.shape))
            or (self._check_quantization(source, output) if source.dtype in rules.QUANTIZED else None)
        )

    def _check_axes(self, source: Tensor) -> str | None:
        # Ascending and different, so that equal reductions are equal operators.
        if list(self.axes) != sorted(set(self.axes)):
            return f"axes {list(self.axes)} must be ascending and different"
        if any(not 0 <= axis < len(source.shape) for axis in self.axes):
            return f"axes {list(self.axes)} are not dimensions of {source}"
        return None

    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        """Return why the scales of quantised tensors are not supported, or ``None``."""
        raise TypeError(f"{self.name} is not quantised")

    def output_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the reduced tensor.

        ``shape`` is that of the input; ``keep_dims`` decides between sizes of 1 and fewer dimensions.
        """
        if self.keep_dims:
            return tuple(1 if axis in self.axes else size for axis, size in enumerate(shape))
        return tuple(size for axis, size in enumerate(shape) if axis not in self.axes)

    def count(self, shape: Sequence[int]) -> int:
        """Return the number of elements of a tensor of ``shape`` that are reduced to one."""
        return math.prod(shape[axis] for axis in self.axes)


class Summing(Reduction):
    """A reduction by addition; integers that are not quantised wrap."""

    half_even: bool = field(default=False, repr=False)
    """Whether sums are brought to the output's scale with one rounding, half to even, as in ONNX."""

    types = (DType.INT8, DType.INT16, *WHOLE, DType.FLOAT32)

    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        rescale = self.half_even_rescale if self.half_even else self.rescale
        return rules.computable(lambda: rescale(source, output))

    @abc.abstractmethod
    def rescale(self, source: Tensor, output: Tensor) -> Rescale:
        """Return the rescaling of a sum of stored values without zero points; raises ``OverflowError``."""

    def half_even_rescale(self, source: Tensor, output: Tensor) -> HalfEvenRescale:
        """Return the same with ``half_even``.

        One rounding, half to even, from a bound on the sum, which follows from the type and the number of elements.
        Raises ``OverflowError`` if the factor has no such form.
        """
        least, greatest = integer_range(source.dtype)
        # The greatest distance from the zero point, which bounds each term of a sum, whatever the input.
        reach = max(greatest - source.affine.zero_point, source.affine.zero_point - least)
        factor = source.affine.scale / output.affine.scale / self._divisor(source)
        return half_even_rescale(factor, self.count(source.shape) * reach)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, output = inputs[0], outputs[0]
        if source.dtype in WHOLE:
            return (self._whole(source, values[0]),)
        sums = np.asarray(centred(source, values[0]).sum(axis=self.axes, keepdims=self.keep_dims))
        if output.dtype is DType.FLOAT32:
            return (finish_float(sums / self._divisor(source), Activation.NONE),)
        if self.half_even:
            stored = rescale_half_even(sums, self.half_even_rescale(source, output)) + output.affine.zero_point
            return (np.clip(stored, *integer_range(output.dtype)).astype(output.dtype.numpy),)
        rescale = self.rescale(source, output)
        return (finish_quantized(sums, [rescale], output, Activation.NONE).reshape(output.shape),)

    # int64 inside, so that a sum of int32 is exact before the quotient; the result wraps in the type.
    def _whole(self, source: Tensor, value: Array) -> Array:
        """Return the result for integers that are not quantised; a quotient is truncated."""
        sums, divisor = value.sum(axis=self.axes, keepdims=self.keep_dims, dtype=np.int64), self._divisor(source)
        # NumPy rounds a negative quotient down, C towards zero.
        return np.asarray(np.abs(sums) // divisor * np.sign(sums)).astype(value.dtype)

    def _divisor(self, source: Tensor) -> int:
        """Return the divisor of a sum that is not quantised."""
        return 1


class Mean(Summing):
    """The mean."""

    name = "MEAN"

    def rescale(self, source: Tensor, output: Tensor) -> Rescale:
        return mean_rescale(source, output, self.count(source.shape))

    def _divisor(self, source: Tensor) -> int:
        return self.count(source.shape)


class Sum(Summing):
    """The sum."""

    name = "SUM"

    def rescale(self, source: Tensor, output: Tensor) -> Rescale:
        # The scale of a sum is that of its terms, so that the factor is the quotient of both scales.
        return requantize_rescale(source, output)


class ReduceExtreme(Reduction):
    """Selects one of the elements; input and output have the same scale.

    NaN is ignored, as in TensorFlow Lite Micro. Its result of nothing but NaN, or of one infinity, is the float32 next
    to that infinity; the infinity itself is ours, because ONNX networks mask elements with it.
    """

    types = (DType.INT8, DType.INT16, *WHOLE, DType.FLOAT32)

    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        return rules.same_quantization(source, output)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (self._pick(values[0]),)

    @abc.abstractmethod
    def _pick(self, value: Array) -> Array:
        """Return the extreme elements of ``value``."""


def _without_nan(value: Array, instead: float) -> Array:
    # np.max would return NaN if there is one.
    return np.where(np.isnan(value), value.dtype.type(instead), value) if value.dtype.kind == "f" else value


class ReduceMax(ReduceExtreme):
    """The greatest."""

    name = "REDUCE_MAX"

    def _pick(self, value: Array) -> Array:
        return np.asarray(np.max(_without_nan(value, -np.inf), axis=self.axes, keepdims=self.keep_dims))


class ReduceMin(ReduceExtreme):
    """The least."""

    name = "REDUCE_MIN"

    def _pick(self, value: Array) -> Array:
        return np.asarray(np.min(_without_nan(value, np.inf), axis=self.axes, keepdims=self.keep_dims))


class ReduceProd(Reduction):
    """The product; integers wrap."""

    name = "REDUCE_PROD"
    types = (*WHOLE, DType.FLOAT32)

    # Overflow and NaN are results of the product.
    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        # int64 wraps at 64 bits, and its low 32 bits are those of a product that wraps at 32.
        wide = values[0].astype(np.float64 if values[0].dtype == np.float32 else np.int64)
        with np.errstate(all="ignore"):
            return (wide.prod(axis=self.axes, keepdims=self.keep_dims).astype(values[0].dtype),)


class Logical(Reduction):
    """A reduction of booleans."""

    types = (DType.BOOL,)


class ReduceAll(Logical):
    """Whether all are true."""

    name = "REDUCE_ALL"

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (np.asarray(values[0].all(axis=self.axes, keepdims=self.keep_dims)),)


class ReduceAny(Logical):
    """Whether at least one is true."""

    name = "REDUCE_ANY"

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (np.asarray(values[0].any(axis=self.axes, keepdims=self.keep_dims)),)
