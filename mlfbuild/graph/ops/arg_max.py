"""ARG_MAX and ARG_MIN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.operator import Operator
from mlfbuild.graph.ops import rules
from mlfbuild.graph.types import Array, DType, Tensor


@dataclass(frozen=True)
class Arg(Operator):
    """The position along ``axis`` (counted from 0) of an extreme element, of the first where several are."""

    axis: int

    results: ClassVar[tuple[DType, ...]] = (DType.INT32,)

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        reason = rules.operands(inputs, outputs, required=1)
        if reason is not None:
            return reason
        source, output = inputs[0], outputs[0]
        assert source is not None
        if not 0 <= self.axis < len(source.shape):
            return f"axis {self.axis} is not a dimension of {source}"
        return (
            rules.arithmetic(source, types=self.types)
            or rules.arithmetic(output, types=self.results)
            or rules.shape(output, (*source.shape[: self.axis], *source.shape[self.axis + 1 :]))
        )


@dataclass(frozen=True)
class ArgMax(Arg):
    """The position of the greatest element."""

    name: ClassVar[str] = "ARG_MAX"

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        assert values[0] is not None
        numbers = np.where(np.isnan(values[0]), -np.inf, values[0])
        return (np.asarray(numbers.argmax(axis=self.axis), np.int32),)


@dataclass(frozen=True)
class ArgMin(Arg):
    """The position of the least element."""

    name: ClassVar[str] = "ARG_MIN"

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        assert values[0] is not None
        numbers = np.where(np.isnan(values[0]), np.inf, values[0])
        return (np.asarray(numbers.argmin(axis=self.axis), np.int32),)
