"""MEAN over some dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.operator import Activation, Operator
from mlfbuild.graph.ops import rules
from mlfbuild.graph.ops.accumulate import centred, finish_float, finish_quantized
from mlfbuild.graph.quantize import mean_rescale
from mlfbuild.graph.types import Array, DType, Tensor


@dataclass(frozen=True)
class Mean(Operator):
    """The mean over ``axes`` (ascending, counted from 0), which stay as dimensions of 1 if ``keep_dims``."""

    axes: tuple[int, ...]
    keep_dims: bool = False

    name: ClassVar[str] = "MEAN"

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        reason = rules.operands(inputs, outputs, required=1)
        if reason is not None:
            return reason
        source, output = inputs[0], outputs[0]
        assert source is not None
        return (
            rules.arithmetic(source, output)
            or self._check_axes(source)
            or rules.shape(output, self.output_shape(source.shape))
            or (
                rules.computable(lambda: mean_rescale(source, output, self.count(source.shape)))
                if source.dtype is DType.INT8
                else None
            )
        )

    def _check_axes(self, source: Tensor) -> str | None:
        if list(self.axes) != sorted(set(self.axes)):
            return f"axes {list(self.axes)} must be ascending and different"
        if any(not 0 <= axis < len(source.shape) for axis in self.axes):
            return f"axes {list(self.axes)} are not dimensions of {source}"
        return None

    def output_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the mean of a tensor of ``shape``."""
        if self.keep_dims:
            return tuple(1 if axis in self.axes else size for axis, size in enumerate(shape))
        return tuple(size for axis, size in enumerate(shape) if axis not in self.axes)

    def count(self, shape: Sequence[int]) -> int:
        """Return how many elements of a tensor of ``shape`` go into one mean."""
        count = 1
        for axis in self.axes:
            count *= shape[axis]
        return count

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        source, output = inputs[0], outputs[0]
        assert source is not None and values[0] is not None
        sums = centred(source, values[0]).sum(axis=self.axes, keepdims=self.keep_dims)
        count = self.count(source.shape)
        if output.dtype is DType.FLOAT32:
            return (finish_float(np.asarray(sums / count), Activation.NONE),)
        rescale = mean_rescale(source, output, count)
        return (finish_quantized(np.asarray(sums), [rescale], output, Activation.NONE).reshape(output.shape),)
