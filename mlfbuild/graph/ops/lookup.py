"""LOOKUP: a function of int8 or int16 as a table; int16 is interpolated linearly between 513 values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.bases import rules
from mlfbuild.graph.bases.unary import Unary
from mlfbuild.graph.lookup_table import look_up
from mlfbuild.graph.types import Array, DType, Tensor

_ENTRIES = {DType.INT8: 256, DType.INT16: 513}


@dataclass(frozen=True)
class Lookup(Unary):
    """Any function of one number; frontends make it of several operators that work element by element."""

    table: tuple[int, ...]
    """The stored results for -128, -127 and so on, and of int16 for -32768, -32640 and so on up to 32768."""

    name: ClassVar[str] = "LOOKUP"
    """Not an operator of TFLite."""
    types: ClassVar[tuple[DType, ...]] = (DType.INT8, DType.INT16)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        reason = rules.arithmetic(source, output, types=self.types) or rules.shape(output, source.shape)
        if reason is None and len(self.table) != _ENTRIES[source.dtype]:
            return f"has a table of {len(self.table)} values, which should be {_ENTRIES[source.dtype]}"
        return reason

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        (value,) = values
        assert value is not None
        if outputs[0].dtype is DType.INT16:
            return (look_up(np.array(self.table, np.int16), value.astype(np.int64)).astype(np.int16),)
        return (np.array(self.table, np.int8)[value.astype(np.int64) + _ENTRIES[DType.INT8] // 2],)

    def _real(self, value: Array) -> Array:
        raise TypeError(f"{self.name} has no function of real numbers")
