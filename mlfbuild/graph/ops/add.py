"""ADD: two tensors whose shapes broadcast as in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.operator import Activation, Operator
from mlfbuild.graph.ops import rules
from mlfbuild.graph.ops.accumulate import centred, finish_float, finish_int8
from mlfbuild.graph.quantize import (
    ADD_LEFT_SHIFT,
    activation_range,
    add_rescales,
    multiply_by_quantized_multiplier,
)
from mlfbuild.graph.types import Array, DType, Tensor


@dataclass(frozen=True)
class Add(Operator):
    """Element-wise sum."""

    activation: Activation = Activation.NONE

    name: ClassVar[str] = "ADD"

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        reason = rules.operands(inputs, outputs, required=2)
        if reason is not None:
            return reason
        first, second = inputs
        assert first is not None and second is not None
        return (
            rules.arithmetic(first, second, outputs[0])
            or self._check_shape(first, second, outputs[0])
            or self._check_rescales(first, second, outputs[0])
        )

    def _check_shape(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        try:
            wanted = np.broadcast_shapes(first.shape, second.shape)
        except ValueError:
            return f"{first} and {second} do not broadcast"
        return rules.shape(output, wanted)

    def _check_rescales(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        if output.dtype is not DType.INT8:
            return None
        return rules.computable(
            lambda: add_rescales(first, second, output), lambda: activation_range(self.activation, output)
        )

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        (first, second), (x, y), output = inputs, values, outputs[0]
        assert first is not None and second is not None and x is not None and y is not None
        if output.dtype is DType.FLOAT32:
            return (finish_float(x.astype(np.float64) + y, self.activation),)
        rescales = add_rescales(first, second, output)
        sums = sum(
            multiply_by_quantized_multiplier(
                (centred(tensor, value) * (1 << ADD_LEFT_SHIFT)).astype(np.int64), rescale.multiplier, rescale.shift
            ).astype(np.float64)
            for tensor, value, rescale in zip((first, second), (x, y), rescales.inputs, strict=True)
        )
        return (finish_int8(np.asarray(sums), [rescales.output], output, self.activation),)
