"""MUL."""

from __future__ import annotations

from mlfbuild.native.graph.bases.accumulate import Sums, finish_quantized
from mlfbuild.native.graph.bases.binary import WHOLE, Arithmetic
from mlfbuild.native.graph.quantize import Rescale
from mlfbuild.native.graph.rescales import multiply_rescale
from mlfbuild.native.graph.tensors import Array, DType, Tensor


class Mul(Arithmetic):
    """Element-wise product."""

    name = "MUL"
    types = (DType.INT8, DType.INT16, *WHOLE, DType.FLOAT32)

    def numbers(self, first: Tensor, second: Tensor, output: Tensor) -> Rescale:
        return multiply_rescale(first, second, output)

    def _exact(self, x: Array, y: Array) -> Array:
        return x * y

    def _quantized(self, tensors: tuple[Tensor, Tensor, Tensor], x: Sums, y: Sums) -> Array:
        return finish_quantized(x * y, [self.numbers(*tensors)], tensors[2], self.activation)
