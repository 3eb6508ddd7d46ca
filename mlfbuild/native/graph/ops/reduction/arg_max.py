"""ARG_MAX and ARG_MIN."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class Arg(Single):
    """The position along ``axis`` (counted from 0) of the first extreme element."""

    axis: int

    types = (DType.INT8, DType.INT16, DType.INT32, DType.FLOAT32)
    results = (DType.INT32, DType.INT64)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        if not 0 <= self.axis < len(source.shape):
            return f"axis {self.axis} is not a dimension of {source}"
        return (
            rules.arithmetic(source, types=self.types)
            or rules.arithmetic(output, types=self.results)
            or rules.shape(output, (*source.shape[: self.axis], *source.shape[self.axis + 1 :]))
        )


class ArgMax(Arg):
    """The position of the greatest element."""

    name = "ARG_MAX"

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        # NaN is replaced by the worst number, so that it never wins; np.argmax would select it.
        return (np.asarray(_numbers(values[0], -np.inf).argmax(axis=self.axis), outputs[0].dtype.numpy),)


class ArgMin(Arg):
    """The position of the least element."""

    name = "ARG_MIN"

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (np.asarray(_numbers(values[0], np.inf).argmin(axis=self.axis), outputs[0].dtype.numpy),)


def _numbers(value: Array, instead: float) -> Array:
    """Return ``value`` with NaN replaced by ``instead``."""
    return np.where(np.isnan(value), np.float32(instead), value) if value.dtype == np.float32 else value
