"""CAST: the same numbers as another type; and BIT_CAST: the same bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.quantize import integer_range
from mlfbuild.native.graph.tensors import EVERY, UNSIGNED, Array, DType, Inputs, Tensor, Values


class Cast(Single):
    """Integers wrap, float32 is truncated and clamped (NaN becomes 0), any number other than 0 becomes true.

    Stored values of quantised tensors are converted without their scale.
    """

    name = "CAST"
    types = (*EVERY, *UNSIGNED)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return rules.shape(output, source.shape)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        # To convert NaN is undefined in C. Arm's VCVT gives 0, and so does this operator.
        value, dtype = values[0], outputs[0].dtype
        if value.dtype == np.float32 and dtype not in {DType.FLOAT32, DType.BOOL}:
            least, greatest = integer_range(dtype)
            bounded = np.clip(np.trunc(np.nan_to_num(value.astype(np.float64), nan=0)), least, greatest)
            # A double cannot represent the greatest int64 or uint64, and rounding up to the next one would wrap.
            below = np.where(bounded >= greatest, 0, bounded).astype(dtype.numpy)
            return (np.where(bounded >= greatest, dtype.numpy.type(greatest), below),)
        return (value.astype(dtype.numpy),)


class BitCast(Single):
    """The bits of each element, read as another type of the same size."""

    name = "BIT_CAST"
    types = (*EVERY, *UNSIGNED)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        if source.dtype.size != output.dtype.size:
            return f"the elements of {source} and {output} differ in size"
        if output.dtype is DType.BOOL and source.dtype is not DType.BOOL:
            return f"{source} may have bits that are neither those of false nor of true"
        # BIT_CAST must give the same bytes on a little-endian target, which NumPy's view does here.
        return rules.shape(output, source.shape)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (np.array(values[0]).view(outputs[0].dtype.numpy),)
