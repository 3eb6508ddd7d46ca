"""SELECT and SELECT_V2."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import EVERY, Array, DType, Inputs, Tensor, Values


class SelectV2(Operator):
    """An element of the second input if the first is true, else one of the third; all three broadcast."""

    name = "SELECT_V2"
    types = (DType.BOOL,)
    results = EVERY

    @rules.takes(3)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        condition, first, second = inputs
        output = outputs[0]
        return (
            rules.arithmetic(condition, types=self.types)
            or next((f"mixes {output} and {t}" for t in (first, second) if t.dtype is not output.dtype), None)
            or rules.broadcast((condition, first, second), output)
            # Alternatives are copied by their stored values, so that their scales must be those of the output.
            or rules.same_quantization(first, output)
            or rules.same_quantization(second, output)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        condition, first, second = values
        return (np.where(condition, first, second),)


class Select(SelectV2):
    """SELECT_V2 of tensors with the same shape."""

    name = "SELECT"

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        reason = super().check(inputs, outputs)
        if reason is not None:
            return reason
        return rules.first(rules.shape(tensor, outputs[0].shape) for tensor in inputs)
