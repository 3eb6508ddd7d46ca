"""CUMSUM and ADD_N: sums along a dimension, and of many tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.operator import Activation, Operator
from mlfbuild.graph.ops import rules
from mlfbuild.graph.ops.accumulate import centred, finish_float, finish_quantized
from mlfbuild.graph.ops.binary import WHOLE
from mlfbuild.graph.ops.single import Single
from mlfbuild.graph.rescales import SUM_LEFT_SHIFT, add_rescales
from mlfbuild.graph.types import Array, DType, Tensor

HALF_BITS = SUM_LEFT_SHIFT[DType.INT8] - 1
"""Fraction bits of int8 summands, as ADD has them after it brought both of its own to twice the greater scale."""

_MOST_TENSORS = 16
"""Of int8 with ``HALF_BITS`` that surely add up within 32 bits."""


@dataclass(frozen=True)
class Cumsum(Single):
    """Each element with all before it along ``axis`` (counted from 0), or after it; integers wrap."""

    axis: int
    exclusive: bool = False
    """Whether the element itself does not count."""
    reverse: bool = False
    """Whether those after it count."""

    name: ClassVar[str] = "CUMSUM"
    types: ClassVar[tuple[DType, ...]] = (DType.INT8, *WHOLE, DType.FLOAT32)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        if not 0 <= self.axis < len(source.shape):
            return f"axis {self.axis} is not a dimension of {source}"
        return (
            rules.arithmetic(source, output, types=self.types)
            or rules.shape(output, source.shape)
            or _check_scales(source, output)
        )

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        source, value = inputs[0], values[0]
        assert source is not None and value is not None
        order = slice(None, None, -1 if self.reverse else 1)
        ordered = np.moveaxis(centred(source, value) if source.dtype not in WHOLE else value, self.axis, 0)[order]
        sums = np.cumsum(ordered, axis=0, dtype=ordered.dtype)
        if self.exclusive:
            sums = np.concatenate([np.zeros_like(sums[:1]), sums[:-1]])
        return (_stored(np.moveaxis(sums[order], 0, self.axis), source, outputs[0]),)


@dataclass(frozen=True)
class AddN(Operator):
    """The sum of two tensors of one shape or more; integers wrap."""

    name: ClassVar[str] = "ADD_N"
    types: ClassVar[tuple[DType, ...]] = (DType.INT8, DType.INT32, DType.FLOAT32)

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        sources = [tensor for tensor in inputs if tensor is not None]
        if len(sources) < 2 or len(sources) < len(inputs):
            return "a required input is absent"
        if len(outputs) != 1:
            return f"has {len(outputs)} outputs, writes 1"
        return (
            rules.arithmetic(*sources, outputs[0], types=self.types)
            or rules.first(rules.shape(tensor, sources[0].shape) for tensor in (*sources, outputs[0]))
            or rules.first(rules.same_quantization(sources[0], source) for source in sources)
            or _check_scales(sources[0], outputs[0])
            or self._check_count(sources)
        )

    def _check_count(self, sources: Sequence[Tensor]) -> str | None:
        if sources[0].dtype is DType.INT8 and len(sources) > _MOST_TENSORS:
            return f"adds {len(sources)} int8 tensors, of which at most {_MOST_TENSORS} surely add up within 32 bits"
        return None

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        source = inputs[0]
        assert source is not None
        terms = [value if source.dtype in WHOLE else centred(source, value) for value in values if value is not None]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return (_stored(total, source, outputs[0]),)


def _check_scales(source: Tensor, output: Tensor) -> str | None:
    if source.dtype is not DType.INT8:
        return None
    return rules.computable(lambda: add_rescales(source, source, output))


def _stored(sums: Array, source: Tensor, output: Tensor) -> Array:
    """Return ``sums`` of elements of ``source``, without zero points, as ``output`` stores them."""
    if output.dtype is DType.FLOAT32:
        return finish_float(sums, Activation.NONE)
    if output.dtype in WHOLE:
        return np.asarray(sums)
    rescale = add_rescales(source, source, output).output
    return finish_quantized(sums * (1 << HALF_BITS), [rescale], output, Activation.NONE)
