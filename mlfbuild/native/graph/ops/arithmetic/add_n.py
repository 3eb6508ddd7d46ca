"""ADD_N."""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.accumulate import centred
from mlfbuild.native.graph.bases.binary import WHOLE
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.ops.reduction.cumsum import check_sum_scales, stored_sums
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

_MOST_TENSORS = 16
"""The number of int8 summands with ``HALF_BITS`` whose sum always fits into 32 bits."""


class AddN(Operator):
    """The sum of two or more tensors of the same shape; integers wrap.

    Integers of 8 bits must all have one scale, unlike those of ADD, and there are at most 16 of them.
    """

    name = "ADD_N"
    types = (DType.INT8, DType.INT32, DType.FLOAT32)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        sources = inputs.present
        if len(sources) < 2 or len(sources) < len(inputs):
            return "a required input is absent"
        if len(outputs) != 1:
            # Wrapping would change a sum unnoticed; the bound makes it impossible.
            return f"has {len(outputs)} outputs, writes 1"
        return (
            rules.arithmetic(*sources, outputs[0], types=self.types)
            or rules.first(rules.shape(tensor, sources[0].shape) for tensor in (*sources, outputs[0]))
            or rules.first(rules.same_quantization(sources[0], source) for source in sources)
            or check_sum_scales(sources[0], outputs[0])
            or self._check_count(sources)
        )

    def _check_count(self, sources: Sequence[Tensor]) -> str | None:
        if sources[0].dtype is DType.INT8 and len(sources) > _MOST_TENSORS:
            return f"adds {len(sources)} int8 tensors, of which at most {_MOST_TENSORS} surely add up within 32 bits"
        return None

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source = inputs[0]
        # int32 and int64 summands have no scale, and are added as they are.
        terms = [value if source.dtype in WHOLE else centred(source, value) for value in values]
        total = terms[0]
        for term in terms[1:]:
            # In the order of the inputs, as the kernel adds: float32 sums depend on it.
            total = total + term
        return (stored_sums(total, source, outputs[0]),)
