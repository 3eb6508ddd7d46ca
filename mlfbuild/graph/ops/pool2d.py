"""AVERAGE_POOL_2D and MAX_POOL_2D: input and output NHWC, of the same scale and zero point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlfbuild.graph.operator import Activation, Operator
from mlfbuild.graph.ops import rules
from mlfbuild.graph.ops.window import Padding, Pair, Window
from mlfbuild.graph.quantize import activation_range
from mlfbuild.graph.types import Array, DType, Tensor


@dataclass(frozen=True)
class Pool2D(Operator):
    """A window moving over an NHWC image; filter and stride are (height, width), padding is explicit."""

    filter: Pair
    stride: Pair = (1, 1)
    padding: Padding = ((0, 0), (0, 0))
    activation: Activation = Activation.NONE

    def window(self) -> Window:
        """Return the window of this pool."""
        return Window(self.filter, self.stride, (1, 1), self.padding)

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        reason = rules.operands(inputs, outputs, required=1)
        if reason is not None:
            return reason
        source, output = inputs[0], outputs[0]
        assert source is not None
        return (
            rules.arithmetic(source, output)
            or rules.rank(source, 4)
            or rules.rank(output, 4)
            or rules.same_quantization(source, output)
            or self.window().problem(source, output)
            or (None if output.shape[3] == source.shape[3] else f"{output} has other channels than {source}")
            or (
                rules.computable(lambda: activation_range(self.activation, output))
                if output.dtype is DType.INT8
                else None
            )
        )

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        raise NotImplementedError


@dataclass(frozen=True)
class AveragePool2D(Pool2D):
    """The mean of the elements under the window; padding does not count."""

    name: ClassVar[str] = "AVERAGE_POOL_2D"


@dataclass(frozen=True)
class MaxPool2D(Pool2D):
    """The greatest of the elements under the window."""

    name: ClassVar[str] = "MAX_POOL_2D"
