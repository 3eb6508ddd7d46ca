"""Base class of operators that only move elements, described as assignments between views of arrays.

The numpy reference executes the assignments; a compiler reads the offsets and strides of the views.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import EVERY, Array, Inputs, Tensor, Values

Move = tuple[Array, Array]
"""(from, to): views of equal shape; ``to`` is in an output, ``from`` in an input or in an output written before."""


class Movement(Operator):
    """Every element of an output is a copy of an element of an input, regardless of its type.

    ``reference`` and the lowering both follow ``moves``. Input and output have the same quantisation, so that stored
    values are copied; NaN and -0.0 stay as they are.
    """

    types = EVERY

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        sources = inputs.present
        # An optional operand makes no sense for copies: every moved element needs a source.
        if not sources or len(sources) < len(inputs):
            return "a required input is absent"
        return (
            self._check_counts(inputs, outputs)
            or next((f"mixes {sources[0]} and {t}" for t in (*sources, *outputs) if t.dtype != sources[0].dtype), None)
            or self._check_shapes(sources, outputs)
            # All of them: one stored number can only mean the same value everywhere if scale and zero point agree.
            or rules.first(rules.same_quantization(source, output) for source in sources for output in outputs)
        )

    def _check_counts(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        """Return why the number of inputs or outputs is wrong; by default, there must be one of each."""
        return rules.operands(inputs, outputs, required=1)

    @abc.abstractmethod
    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        """Return why the shapes do not fit the operator and each other."""

    @abc.abstractmethod
    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        """Yield the assignments from ``sources`` to ``outputs``, arrays of the tensors' shapes, in order.

        Each pair are views of equal shape. Later assignments may read what earlier ones wrote, as in MIRROR_PAD. The
        arrays may be uninitialised: callers also use them for their strides only.
        """

    def filling(self, output: Tensor) -> int | None:
        """Return the byte that fills positions that no move writes; ``None`` if moves write all of ``output``."""
        return None

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        sources = values.present
        # Filled first, because moves may leave gaps, such as the margins of SPACE_TO_BATCH_ND.
        results = tuple(np.full(output.shape, self.filling(output) or 0, output.dtype.numpy) for output in outputs)
        for source, target in self.moves(sources, results):
            target[...] = source
        return results
