"""ADD, SUB and SQUARED_DIFFERENCE."""

from __future__ import annotations

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.accumulate import Sums
from mlfbuild.native.graph.bases.binary import WHOLE, Arithmetic, Binary, on_one_scale
from mlfbuild.native.graph.rescales import (
    DIFFERENCE_LEFT_SHIFT,
    SUM_LEFT_SHIFT,
    BinaryRescales,
    add_rescales,
    squared_difference_rescales,
)
from mlfbuild.native.graph.tensors import Array, DType, Tensor


class Addition(Arithmetic):
    """A sum or difference of two elements.

    int8 and int16 inputs are brought to a common scale before they are added (``rescales.py``).
    """

    types = (DType.INT8, DType.INT16, *WHOLE, DType.FLOAT32)

    def numbers(self, first: Tensor, second: Tensor, output: Tensor) -> BinaryRescales:
        """Return the rescalings of inputs and result; raises the errors of ``add_rescales``."""
        return add_rescales(first, second, output)

    def _quantized(self, tensors: tuple[Tensor, Tensor, Tensor], x: Sums, y: Sums) -> Array:
        # 20 or 15 bits: as many as an input leaves free in 32 bits, so that rounding costs least.
        left_shift = SUM_LEFT_SHIFT[tensors[2].dtype]
        return on_one_scale(tensors, x, y, self.numbers(*tensors), left_shift, self._exact, self.activation)


class Add(Addition):
    """Element-wise sum."""

    name = "ADD"

    def _exact(self, x: Array, y: Array) -> Array:
        return x + y


class Sub(Addition):
    """Element-wise difference."""

    name = "SUB"

    def _exact(self, x: Array, y: Array) -> Array:
        return x - y


class SquaredDifference(Binary):
    """The square of the element-wise difference."""

    name = "SQUARED_DIFFERENCE"
    types = (DType.INT8, DType.INT16, DType.INT32, DType.FLOAT32)

    def _check_quantization(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        return rules.computable(lambda: squared_difference_rescales(first, second, output))

    def _quantized(self, tensors: tuple[Tensor, Tensor, Tensor], x: Sums, y: Sums) -> Array:
        # The square of a difference on one scale; the output's factor contains the square of that scale.
        left_shift = DIFFERENCE_LEFT_SHIFT[tensors[2].dtype]
        return on_one_scale(tensors, x, y, squared_difference_rescales(*tensors), left_shift, self._real)

    def _real(self, x: Array, y: Array) -> Array:
        return (x - y) ** 2
