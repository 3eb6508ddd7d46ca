"""L2_NORMALIZATION: divides each vector along the last dimension by its length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.fixed_point import inverse_square_root
from mlfbuild.native.graph.quantize import Rescale
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

_FRACTION_BITS = 7
"""Of an int8 output: scale 1/128, zero point 0."""

# Epsilon of LiteRT's reference/l2normalization.h. A vector of zeros stays zero.
_LEAST_LENGTH = 1e-6
"""The least length of a float32 vector, to avoid a division by 0."""


class L2Normalization(Single):
    """x / sqrt(sum of x**2) over the last dimension."""

    shifted: bool = field(default=False, repr=False)
    """Whether integers are shifted left by the output's fraction bits before they are multiplied, as LiteRT does for
    uint8, instead of with the multiplier."""

    name = "L2_NORMALIZATION"

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.arithmetic(source, output)
            or rules.shape(output, source.shape)
            or rules.vectors(source)
            or (self._check_quantization(output) if source.dtype is DType.INT8 else None)
        )

    def _check_quantization(self, output: Tensor) -> str | None:
        # TFLite prescribes them: elements of a vector of length 1 are from -1 to 1.
        if output.affine.scale != 1 / (1 << _FRACTION_BITS) or output.affine.zero_point != 0:
            return f"{output} must have scale 1/{1 << _FRACTION_BITS} and zero point 0"
        return None

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, value = inputs[0], values[0]
        if source.dtype is DType.FLOAT32:
            wide = value.astype(np.float64)
            lengths = np.sqrt((wide * wide).sum(axis=-1, keepdims=True))
            # The largest of both, not a sum, so that vectors of usual length are not changed.
            return (np.asarray(wide / np.maximum(lengths, _LEAST_LENGTH), np.float32),)
        rows = (value.astype(np.int64) - source.affine.zero_point).reshape(-1, value.shape[-1])
        result = np.stack([self._row(row) for row in rows])
        return (np.clip(result, -128, 127).astype(np.int8).reshape(value.shape),)

    def _row(self, row: Array) -> Array:
        # The squared length fits into int32 for the depths that occur, but is summed in int64.
        multiplier, shift = inverse_square_root(int((row * row).sum()))
        if self.shifted:
            return Rescale(multiplier, shift).apply(row << _FRACTION_BITS)
        # The fraction bits of the output are part of the shift, so that there is only one rounding.
        return Rescale(multiplier, shift + _FRACTION_BITS).apply(row)
