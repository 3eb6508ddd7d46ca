"""QUANTIZE (float32 to int8, or int8 to another int8 scale) and DEQUANTIZE (int8 to float32)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.operator import Activation, Operator
from mlfbuild.graph.ops import rules
from mlfbuild.graph.ops.accumulate import centred, finish_quantized
from mlfbuild.graph.quantize import integer_range, requantize_rescale, round_half_away
from mlfbuild.graph.types import Array, DType, Tensor


@dataclass(frozen=True)
class Quantize(Operator):
    """Brings float32 or int8 to the output's int8 scale and zero point."""

    name: ClassVar[str] = "QUANTIZE"

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        reason = rules.operands(inputs, outputs, required=1)
        if reason is not None:
            return reason
        source, output = inputs[0], outputs[0]
        assert source is not None
        return (
            rules.arithmetic(source)
            or (None if output.dtype is DType.INT8 else f"{output} must be int8")
            or rules.affine(output)
            or rules.shape(output, source.shape)
            or (rules.computable(lambda: requantize_rescale(source, output)) if source.dtype is DType.INT8 else None)
        )

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        source, output = inputs[0], outputs[0]
        assert source is not None and values[0] is not None and output.quantization is not None
        if source.dtype is DType.INT8:
            rescales = [requantize_rescale(source, output)]
            return (finish_quantized(centred(source, values[0]), rescales, output, Activation.NONE),)
        with np.errstate(over="ignore", invalid="ignore"):
            quotients = values[0] / np.float32(output.quantization.scale)
            rounded = round_half_away(np.where(np.isnan(quotients), np.float32(0), quotients))  # NaN is stored as 0.0
        stored = rounded.astype(np.float64) + output.quantization.zero_point
        return (np.asarray(np.clip(stored, *integer_range(output.dtype)), np.int8),)


@dataclass(frozen=True)
class Dequantize(Operator):
    """Brings int8 to float32."""

    name: ClassVar[str] = "DEQUANTIZE"

    def check(self, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> str | None:
        reason = rules.operands(inputs, outputs, required=1)
        if reason is not None:
            return reason
        source, output = inputs[0], outputs[0]
        assert source is not None
        return (
            (None if source.dtype is DType.INT8 else f"{source} must be int8")
            or (None if output.dtype is DType.FLOAT32 else f"{output} must be float32")
            or rules.affine(source)
            or rules.shape(output, source.shape)
        )

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        source = inputs[0]
        assert source is not None and values[0] is not None and source.quantization is not None
        with np.errstate(over="ignore"):
            return (np.asarray(centred(source, values[0]) * source.quantization.scale, np.float32),)
