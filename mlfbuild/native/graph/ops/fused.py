"""Several operators that are executed as one, in model files of no format: FUSED and LOOKUP."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Unary
from mlfbuild.native.graph.lookup_table import look_up
from mlfbuild.native.graph.nodes import Graph, evaluate
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class Fused(Operator):
    """The nodes of ``part``. The inputs are those of ``part``, followed by the constants of its nodes."""

    name = "FUSED"
    """Not an operator of TFLite; only compilers create it."""

    part: Graph

    @property
    def label(self) -> str:
        """The names of the operators: ``CONV_2D + ADD``."""
        return " + ".join(node.operator.name for node in self.part.nodes)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        given = [tensor.shape for tensor in inputs[: len(self.part.inputs)].present]
        expected = [self.part.tensor(name).shape for name in self.part.inputs]
        made = [self.part.tensor(name).shape for name in self.part.outputs]
        return None if given == expected and [t.shape for t in outputs] == made else "has tensors of other shapes"

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        """Return the sum over its nodes; rows that are computed again for the next ones count once."""
        part = self.part
        return sum(node.operator.macs(part.inputs_of(node), part.outputs_of(node)) for node in part.nodes)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        given = values[: len(self.part.inputs)]  # constants follow
        computed = evaluate(self.part, dict(zip(self.part.inputs, given, strict=True)))
        return tuple(computed[name] for name in self.part.outputs)


# 256 values of int8; 512 intervals and one end of int16.
_ENTRIES = {DType.INT8: 256, DType.INT16: 513}


class Lookup(Unary):
    """Any function of one number; frontends make it of several operators that work element by element."""

    table: tuple[int, ...]
    """The stored results for -128, -127 and so on, and of int16 for -32768, -32640 and so on up to 32768."""

    name = "LOOKUP"
    """Not an operator of TFLite."""
    types = (DType.INT8, DType.INT16)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        # Scales are not compared: the table contains both of them already.
        reason = rules.arithmetic(source, output, types=self.types) or rules.shape(output, source.shape)
        if reason is None and len(self.table) != _ENTRIES[source.dtype]:
            return f"has a table of {len(self.table)} values, which should be {_ENTRIES[source.dtype]}"
        return reason

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        (value,) = values
        if outputs[0].dtype is DType.INT16:
            return (look_up(np.array(self.table, np.int16), value.astype(np.int64)).astype(np.int16),)
        return (np.array(self.table, np.int8)[value.astype(np.int64) + _ENTRIES[DType.INT8] // 2],)

    def _real(self, value: Array) -> Array:
        raise TypeError(f"{self.name} has no function of real numbers")
