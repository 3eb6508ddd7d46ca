"""BATCH_MATMUL: products of matrices in the last two dimensions; the dimensions before broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.operator import Activation, Operator
from mlfbuild.graph.ops import rules
from mlfbuild.graph.ops.accumulate import centred, finish_float, finish_quantized
from mlfbuild.graph.ops.binary import binary_tensors
from mlfbuild.graph.quantize import Rescale, fully_connected_rescales
from mlfbuild.graph.types import Array, DType, Tensor


@dataclass(frozen=True)
class BatchMatmul(Operator):
    """[..., M, K] times [..., K, N]; ``adj_x`` and ``adj_y`` take a matrix with rows and columns exchanged."""

    adj_x: bool = False
    adj_y: bool = False

    name: ClassVar[str] = "BATCH_MATMUL"

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        reason = rules.operands(inputs, outputs, required=2)
        if reason is not None:
            return reason
        first, second, output = binary_tensors(inputs, outputs)
        return (
            rules.arithmetic(first, second, output)
            or self._check_shapes(first, second, output)
            or (rules.computable(lambda: self.rescale(first, second, output)) if first.dtype is DType.INT8 else None)
        )

    def _check_shapes(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        if min(len(first.shape), len(second.shape)) < 2:
            return f"{first} and {second} must be matrices"
        (rows, depth), (other, columns) = self.sizes(first, second)
        try:
            batches = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
        except ValueError:
            return f"{first} and {second} do not broadcast"
        if depth != other:
            return f"a matrix of {depth} columns of {first} does not fit one of {other} rows of {second}"
        return rules.shape(output, (*batches, rows, columns))

    def sizes(self, first: Tensor, second: Tensor) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return (rows, columns) of the matrices that are multiplied."""
        rows, depth = first.shape[-2:][::-1] if self.adj_x else first.shape[-2:]
        other, columns = second.shape[-2:][::-1] if self.adj_y else second.shape[-2:]
        return (rows, depth), (other, columns)

    def rescale(self, first: Tensor, second: Tensor, output: Tensor) -> Rescale:
        """Return the rescaling of sums of products; raises ``OverflowError``."""
        return fully_connected_rescales(first, second, output)[0]

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        first, second, output = binary_tensors(inputs, outputs)
        assert values[0] is not None and values[1] is not None
        x, y = centred(first, values[0]), centred(second, values[1])
        sums = np.matmul(np.swapaxes(x, -1, -2) if self.adj_x else x, np.swapaxes(y, -1, -2) if self.adj_y else y)
        if output.dtype is DType.FLOAT32:
            return (finish_float(sums, Activation.NONE),)
        return (finish_quantized(sums, [self.rescale(first, second, output)], output, Activation.NONE),)
