"""BATCH_MATMUL: products of matrices in the last two dimensions; the leading dimensions broadcast.

MATMUL_INTEGER is the product of rows with a computed zero point and a constant matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules, weighted
from mlfbuild.native.graph.bases.accumulate import centred, finish
from mlfbuild.native.graph.bases.binary import binary_tensors
from mlfbuild.native.graph.operator import Activation, Operator
from mlfbuild.native.graph.quantize import Rescale, product_rescale
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

_LARGEST_INT16_DEPTH = 1 << 16
"""The number of products of two int16 whose sum is below 2**47."""


class BatchMatmul(Operator):
    """[..., M, K] times [..., K, N]; ``adj_x`` and ``adj_y`` transpose a matrix.

    int16 may be multiplied by int8 without a zero point.
    """

    adj_x: bool = False
    adj_y: bool = False
    rounded_product: bool = False
    """Whether the product of two scales is rounded to float32, as TensorFlow Lite Micro did until 2026-10-12."""

    name = "BATCH_MATMUL"
    types = weighted.TYPES

    @rules.takes(2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        first, second, output = binary_tensors(inputs, outputs)
        return (
            self._check_types(first, second, output)
            or self._check_shapes(first, second, output)
            or (None if first.dtype is DType.FLOAT32 else self._check_rescale(first, second, output))
        )

    def _check_types(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        if (first.dtype, second.dtype) != (DType.INT16, DType.INT8):
            return rules.arithmetic(first, second, output, types=self.types)
        return (
            rules.arithmetic(first, output, types=self.types)
            or rules.affine(second)
            or (f"{second} must have the zero point 0" if second.affine.zero_point != 0 else None)
        )

    def _check_rescale(self, first: Tensor, second: Tensor, output: Tensor) -> str | None:
        wide = weighted.sums_are_wide(first, None)
        if wide and self.sizes(first, second)[0][1] > _LARGEST_INT16_DEPTH:
            return f"{first} has more than {_LARGEST_INT16_DEPTH} products for an element"
        return rules.computable(lambda: weighted.check_rescales([self.rescale(first, second, output)], wide=wide))

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
        """Return the rescaling of sums of products; raises ``OverflowError``.

        The factor is the product of both scales divided by that of ``output``, for sums of stored values without their
        zero points.
        """
        return product_rescale(first, second, output, rounded=self.rounded_product)

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        """Return the number of products: K for each element of the result."""
        first, second, output = binary_tensors(inputs, outputs)
        return output.elements * self.sizes(first, second)[0][1]

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        first, second, output = binary_tensors(inputs, outputs)
        x, y = centred(first, values[0]), centred(second, values[1])
        sums = np.matmul(np.swapaxes(x, -1, -2) if self.adj_x else x, np.swapaxes(y, -1, -2) if self.adj_y else y)
        rescales = [] if output.dtype is DType.FLOAT32 else [self.rescale(first, second, output)]
        wide = weighted.sums_are_wide(first, None)
        return (finish(sums, None, rescales, output, Activation.NONE, wide=wide),)


class MatmulInteger(Operator):
    """Writes the sums of (row - zero point) * (weight - offset), which wrap at 32 bits.

    Rows are int8 [..., K]; the zero point is one int8 number, constant or computed. The weights are int8 [N, K], and
    the offsets int32 [N]; without them, they are zeros.
    """

    name = "MATMUL_INTEGER"
    types = (DType.INT8,)
    results = (DType.INT32,)

    @rules.takes(3, optional=1)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        reason = weighted.check_integers(inputs, outputs)
        if reason is not None:
            return reason
        rows, weights = inputs[0], inputs[2]
        return (
            rules.rank(weights, 2)
            or (None if rows.shape[-1:] == weights.shape[1:] else f"{rows} does not fit {weights}")
            or rules.shape(outputs[0], (*rows.shape[:-1], weights.shape[0]))
        )

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        """Return the number of products: K for each element of the result."""
        return outputs[0].elements * inputs[2].shape[1]

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        (rows, zero_point, weights), offsets = values[:3], values.optional(3)
        matrix = weights.astype(np.int64) - (0 if offsets is None else offsets.astype(np.int64)[:, np.newaxis])
        return (((rows.astype(np.int64) - zero_point.astype(np.int64).reshape(())) @ matrix.T).astype(np.int32),)
