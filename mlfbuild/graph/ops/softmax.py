"""SOFTMAX over the last dimension; int8 in gemmlowp's fixed point."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlfbuild.graph.operator import Operator
from mlfbuild.graph.ops import rules
from mlfbuild.graph.quantize import softmax_rescale
from mlfbuild.graph.types import Array, DType, Tensor


@dataclass(frozen=True)
class Softmax(Operator):
    """exp(beta * x) divided by its sum over the last dimension; an int8 output has scale 1/256 and zero point -128."""

    beta: float = 1.0

    name: ClassVar[str] = "SOFTMAX"

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        reason = rules.operands(inputs, outputs, required=1)
        if reason is not None:
            return reason
        source, output = inputs[0], outputs[0]
        assert source is not None
        return (
            rules.arithmetic(source, output)
            or rules.shape(output, source.shape)
            or (None if source.shape else f"{source} has no dimension to go over")
            or (None if math.isfinite(self.beta) and self.beta > 0 else f"beta {self.beta} must be positive")
            or (self._check_quantization(source, output) if source.dtype is DType.INT8 else None)
        )

    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        assert output.quantization is not None
        if output.quantization.scale != 1 / 256 or output.quantization.zero_point != -128:
            return f"{output} must have scale 1/256 and zero point -128"
        return rules.computable(lambda: softmax_rescale(source, self.beta))

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        raise NotImplementedError
