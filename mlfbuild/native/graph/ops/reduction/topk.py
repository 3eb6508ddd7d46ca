"""TOPK_V2: the greatest elements of each row, or the least, and their positions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class TopkV2(Operator):
    """The first ``k`` elements of each row, the last dimension, in descending order, and their positions as int32.

    With ``least``, the order is ascending. Equal elements keep the order of their positions; NaN is after all numbers.
    """

    k: int
    least: bool = False

    name = "TOPK_V2"
    types = (
        DType.INT8, DType.INT16, DType.INT32, DType.INT64, DType.UINT8, DType.FLOAT32
    )  # fmt: skip

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        if len(inputs.present) != 1 or len(outputs) != 2:
            return f"has {len(inputs)} inputs and {len(outputs)} outputs, takes 1 and writes 2"
        source, (values, positions) = inputs[0], outputs
        return (
            rules.vectors(source)
            or self._check_count(source)
            or (None if source.dtype in self.types else f"{source}: the type must be {rules.alternatives(self.types)}")
            or (None if source.dtype is values.dtype else f"mixes {source} and {values}")
            or rules.same_quantization(source, values)
            or rules.arithmetic(positions, types=(DType.INT32,))
            or rules.first(rules.shape(output, (*source.shape[:-1], self.k)) for output in outputs)
        )

    def _check_count(self, source: Tensor) -> str | None:
        return None if 1 <= self.k <= source.shape[-1] else f"{self.k} elements of each row do not fit {source}"

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        value = values[0]
        # Ranks instead of values, because their order can be reversed for every type, also for unsigned integers.
        rank = np.unique(value, return_inverse=True)[1].reshape(value.shape)  # NaN, the greatest, is after all numbers
        if not self.least:
            # Negating the rank would put NaN first.
            rank = np.where(np.isnan(value), 1, -rank) if value.dtype == np.float32 else -rank
        # Stable, so that equal elements keep the order of their positions.
        positions = np.argsort(rank, axis=-1, kind="stable")[..., : self.k]
        return np.take_along_axis(value, positions, axis=-1), positions.astype(np.int32)
