"""SCATTER_ELEMENTS of ONNX: a row of elements, some of which are replaced by others or combined with them."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class ScatterUpdate(enum.Enum):
    """The effect of an update on the element at its position."""

    SET = "set"
    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"


# ``max`` and ``min`` return their first argument unless the second is greater or less, which matters for NaN.
_COMBINE: Mapping[ScatterUpdate, Callable[[Any, Any], Any]] = {
    ScatterUpdate.SET: lambda _, update: update,
    ScatterUpdate.ADD: lambda value, update: value + update,
    ScatterUpdate.MUL: lambda value, update: value * update,
    ScatterUpdate.MAX: lambda value, update: max(update, value),
    ScatterUpdate.MIN: lambda value, update: min(update, value),
}


class ScatterElements(Operator):
    """Elements [n] with updates [m] (input 2) at the positions [m] (input 1), one update after the other.

    An update at a position out of range is ignored. Only float32 elements are combined with updates. If the first input
    is absent, all elements are 0, and updates replace them.
    """

    update: ScatterUpdate = ScatterUpdate.SET

    name = "SCATTER_ELEMENTS"
    types = tuple(DType)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        absent = len(inputs) > 0 and inputs.optional(0) is None
        given = inputs.with_operand(0, outputs[0]) if absent else inputs
        reason = rules.operands(given, outputs, required=3)
        if reason is not None:
            return reason
        (source, places, updates), output = given, outputs[0]
        if absent and self.update is not ScatterUpdate.SET:
            return "there are no elements that updates are combined with"
        types = self.types if self.update is ScatterUpdate.SET else (DType.FLOAT32,)
        return (
            (None if source.dtype in types else f"{source}: the type must be {rules.alternatives(types)}")
            or rules.first(
                None if tensor.dtype is source.dtype else f"mixes {source} and {tensor}" for tensor in (updates, output)
            )
            or rules.same_quantization(source, updates)
            or rules.same_quantization(source, output)
            or rules.arithmetic(places, types=(DType.INT32,))
            or rules.first(rules.rank(tensor, 1) for tensor in (source, places))
            or rules.shape(updates, places.shape)
            or rules.shape(output, source.shape)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        (places, updates), given, output = values[1:], values.optional(0), outputs[0]
        value = np.zeros(output.shape, output.dtype.numpy) if given is None else given
        # In double, and rounded once at the end, to have the kernel's result within the tolerance of float32.
        made = value.copy() if self.update is ScatterUpdate.SET else value.astype(np.float64)
        valid = (places >= 0) & (places < value.size)
        for place, update in zip(places[valid].tolist(), updates[valid], strict=True):
            made[place] = _COMBINE[self.update](made[place], update)
        return (made.astype(value.dtype),)
