"""RESHAPE, SQUEEZE and EXPAND_DIMS: the same elements under another shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlfbuild.graph.operator import Operator
from mlfbuild.graph.ops import rules
from mlfbuild.graph.types import Array, DType, Tensor


@dataclass(frozen=True)
class Reshape(Operator):
    """Copies the bytes as they are; the new shape is the output's."""

    name: ClassVar[str] = "RESHAPE"
    types: ClassVar[tuple[DType, ...]] = tuple(DType)

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        reason = rules.operands(inputs, outputs, required=1)
        if reason is not None:
            return reason
        source, output = inputs[0], outputs[0]
        assert source is not None
        if source.dtype is not output.dtype:
            return f"mixes {source} and {output}"
        return rules.same_elements(source, output)

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        (value,) = values
        assert value is not None
        return (value.reshape(outputs[0].shape),)


@dataclass(frozen=True)
class Squeeze(Reshape):
    """Takes dimensions of 1 away."""

    name: ClassVar[str] = "SQUEEZE"


@dataclass(frozen=True)
class ExpandDims(Reshape):
    """Puts a dimension of 1 in."""

    name: ClassVar[str] = "EXPAND_DIMS"
