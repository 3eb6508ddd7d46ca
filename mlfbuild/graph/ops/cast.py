"""CAST: the same numbers as another type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.bases import rules
from mlfbuild.graph.bases.single import Single
from mlfbuild.graph.quantize import integer_range
from mlfbuild.graph.types import EVERY, UNSIGNED, Array, DType, Tensor


@dataclass(frozen=True)
class Cast(Single):
    """Integers wrap, float32 is truncated and clamped (NaN becomes 0), any number other than 0 becomes true.

    Stored values of quantised tensors are converted without their scale.
    """

    name: ClassVar[str] = "CAST"
    types: ClassVar[tuple[DType, ...]] = (*EVERY, *UNSIGNED)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return rules.shape(output, source.shape)

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        value, dtype = values[0], outputs[0].dtype
        assert value is not None
        if value.dtype == np.float32 and dtype not in {DType.FLOAT32, DType.BOOL}:
            least, greatest = integer_range(dtype)
            bounded = np.clip(np.trunc(np.nan_to_num(value.astype(np.float64), nan=0)), least, greatest)
            # A double cannot represent the greatest int64 or uint64, and rounding up to the next one would wrap.
            below = np.where(bounded >= greatest, 0, bounded).astype(dtype.numpy)
            return (np.where(bounded >= greatest, dtype.numpy.type(greatest), below),)
        return (value.astype(dtype.numpy),)
