"""Base class of operators with one input and one output."""

from __future__ import annotations

import abc
from collections.abc import Sequence

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Inputs, Tensor


class Single(Operator):
    """An operator with one input and one output.

    Subclasses implement ``_check`` with both tensors, whose number is already right, and ``reference``.
    """

    @rules.takes(1)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        return self._check(inputs[0], outputs[0])

    @abc.abstractmethod
    def _check(self, source: Tensor, output: Tensor) -> str | None:
        """Return why ``source`` and ``output`` break the operator's shape and type rules, or ``None``."""
