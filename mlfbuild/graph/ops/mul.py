"""MUL and DIV."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlfbuild.graph.ops.accumulate import Sums, finish_quantized
from mlfbuild.graph.ops.binary import Arithmetic
from mlfbuild.graph.quantize import Rescale
from mlfbuild.graph.rescales import multiply_rescale
from mlfbuild.graph.types import Array, DType, Tensor


@dataclass(frozen=True)
class Mul(Arithmetic):
    """Element-wise product."""

    name: ClassVar[str] = "MUL"

    def numbers(self, first: Tensor, second: Tensor, output: Tensor) -> Rescale:
        return multiply_rescale(first, second, output)

    def _exact(self, x: Sums, y: Sums) -> Sums:
        return x * y

    def _quantized(self, tensors: tuple[Tensor, Tensor, Tensor], x: Sums, y: Sums) -> Array:
        return finish_quantized(x * y, [self.numbers(*tensors)], tensors[2], self.activation)


@dataclass(frozen=True)
class Div(Arithmetic):
    """Element-wise quotient of float32."""

    name: ClassVar[str] = "DIV"
    types: ClassVar[tuple[DType, ...]] = (DType.FLOAT32,)

    def _exact(self, x: Sums, y: Sums) -> Sums:
        return x / y
