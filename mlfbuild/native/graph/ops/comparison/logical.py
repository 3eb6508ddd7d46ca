"""LOGICAL_AND, LOGICAL_OR and LOGICAL_NOT."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.binary import Binary
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class LogicalAnd(Binary):
    """Whether both elements are true."""

    name = "LOGICAL_AND"
    types = (DType.BOOL,)
    function = np.logical_and


class LogicalOr(Binary):
    """Whether at least one element is true."""

    name = "LOGICAL_OR"
    types = (DType.BOOL,)
    function = np.logical_or


class LogicalNot(Single):
    """Whether the element is false."""

    name = "LOGICAL_NOT"
    types = (DType.BOOL,)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return rules.arithmetic(source, output, types=self.types) or rules.shape(output, source.shape)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (np.asarray(np.logical_not(values[0])),)
