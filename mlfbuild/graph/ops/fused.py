"""Several operators that are executed as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlfbuild.graph.evaluation import evaluate
from mlfbuild.graph.operator import Operator
from mlfbuild.graph.types import Array, Graph, Tensor


@dataclass(frozen=True)
class Fused(Operator):
    """The nodes of ``part``. The inputs are those of ``part``, followed by the constants of its nodes."""

    name: ClassVar[str] = "FUSED"
    """Not an operator of TFLite; only compilers create it."""

    part: Graph

    @property
    def label(self) -> str:
        """The names of the operators: ``CONV_2D + ADD``."""
        return " + ".join(node.operator.name for node in self.part.nodes)

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        given = [tensor.shape for tensor in inputs[: len(self.part.inputs)] if tensor is not None]
        expected = [self.part.tensor(name).shape for name in self.part.inputs]
        made = [self.part.tensor(name).shape for name in self.part.outputs]
        return None if given == expected and [t.shape for t in outputs] == made else "has tensors of other shapes"

    def macs(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> int:
        """Return the sum over its nodes; rows that are computed again for the next ones count once."""
        part = self.part
        return sum(node.operator.macs(part.inputs_of(node), part.outputs_of(node)) for node in part.nodes)

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        known = zip(self.part.inputs, values, strict=False)  # constants follow
        computed = evaluate(self.part, {name: value for name, value in known if value is not None})
        return tuple(computed[name] for name in self.part.outputs)
