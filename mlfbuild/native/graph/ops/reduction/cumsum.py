"""CUMSUM."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.accumulate import centred, finish_float, finish_quantized
from mlfbuild.native.graph.bases.binary import WHOLE
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.operator import Activation
from mlfbuild.native.graph.rescales import SUM_LEFT_SHIFT, add_rescales
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

HALF_BITS = SUM_LEFT_SHIFT[DType.INT8] - 1
"""Fraction bits of int8 summands, as in ADD after it rescaled both inputs to twice the greater scale."""


class Cumsum(Single):
    """The sum of each element and all before (or after) it along ``axis`` (counted from 0); integers wrap."""

    axis: int
    exclusive: bool = False
    """Whether the element itself is excluded."""
    reverse: bool = False
    """Whether the elements after it are summed."""

    name = "CUMSUM"
    types = (DType.INT8, *WHOLE, DType.FLOAT32)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        if not 0 <= self.axis < len(source.shape):
            return f"axis {self.axis} is not a dimension of {source}"
        return (
            rules.arithmetic(source, output, types=self.types)
            or rules.shape(output, source.shape)
            or check_sum_scales(source, output)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, value = inputs[0], values[0]
        order = slice(None, None, -1 if self.reverse else 1)
        ordered = np.moveaxis(centred(source, value) if source.dtype not in WHOLE else value, self.axis, 0)[order]
        # The type of the values and not NumPy's default: int32 sums must wrap at 32 bits.
        sums = np.cumsum(ordered, axis=0, dtype=ordered.dtype)
        if self.exclusive:
            # One element later, beginning with 0, in the direction of the sum.
            sums = np.concatenate([np.zeros_like(sums[:1]), sums[:-1]])
        return (stored_sums(np.moveaxis(sums[order], 0, self.axis), source, outputs[0]),)


def check_sum_scales(source: Tensor, output: Tensor) -> str | None:
    """Return why sums of int8 ``source`` cannot be rescaled to ``output``, or ``None``.

    int8 sums are rescaled with the factor of an ADD of two tensors with the scale of ``source``.
    """
    if source.dtype is not DType.INT8:
        return None
    return rules.computable(lambda: add_rescales(source, source, output))


def stored_sums(sums: Array, source: Tensor, output: Tensor) -> Array:
    """Return ``sums`` of elements of ``source``, without zero points, as ``output`` stores them.

    ``sums`` are float64 for int8 and float32, and integers otherwise. The result has their shape.
    """
    if output.dtype is DType.FLOAT32:
        return finish_float(sums, Activation.NONE)
    if output.dtype in WHOLE:
        return np.asarray(sums)
    rescale = add_rescales(source, source, output).output
    return finish_quantized(sums * (1 << HALF_BITS), [rescale], output, Activation.NONE)
