"""PAD with the value that means 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.operator import Operator
from mlfbuild.graph.ops import rules
from mlfbuild.graph.types import Array, Tensor


@dataclass(frozen=True)
class Pad(Operator):
    """Adds ``paddings[d] = (before, after)`` elements to dimension d: 0, or the output's zero point."""

    paddings: tuple[tuple[int, int], ...]

    name: ClassVar[str] = "PAD"

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        reason = rules.operands(inputs, outputs, required=1)
        if reason is not None:
            return reason
        source, output = inputs[0], outputs[0]
        assert source is not None
        return rules.arithmetic(source, output) or self._check_shape(source, output)

    def _check_shape(self, source: Tensor, output: Tensor) -> str | None:
        if len(self.paddings) != len(source.shape):
            return f"{len(self.paddings)} pairs of paddings do not fit {source}"
        if any(min(pair) < 0 for pair in self.paddings):
            return f"paddings {self.paddings} must not be negative"
        return rules.shape(output, [size + sum(pair) for size, pair in zip(source.shape, self.paddings, strict=True)])

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        (value,) = values
        assert value is not None
        quantization = outputs[0].quantization
        fill = 0 if quantization is None else quantization.zero_point
        return (np.pad(value, self.paddings, constant_values=fill),)
