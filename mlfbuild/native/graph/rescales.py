"""Rescalings of operators on two tensors: inputs to a common scale, and the result to the output's scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlfbuild.native.graph.quantize import Rescale, quantize_multiplier, scale_of
from mlfbuild.native.graph.tensors import DType, Tensor

SUM_LEFT_SHIFT = {DType.INT8: 20, DType.INT16: 15}
"""Bits by which ADD and SUB shift their inputs left before they bring them to a common scale."""

DIFFERENCE_LEFT_SHIFT = {DType.INT8: 7, DType.INT16: 0}
"""The same for SQUARED_DIFFERENCE, whose square must fit into 32 bits."""

COMPARISON_LEFT_SHIFT = 8
"""Bits by which comparisons shift stored values left before they rescale and compare them."""


@dataclass(frozen=True)
class BinaryRescales:
    """The rescalings of two inputs, shifted left, to a common scale, and of the result to the output's scale."""

    inputs: tuple[Rescale, Rescale]
    output: Rescale


def add_rescales(first: Tensor, second: Tensor, output: Tensor) -> BinaryRescales:
    """Return the three rescalings of a quantised ADD or SUB.

    Raises ``OverflowError`` if the output's scale is so small that the sum would be multiplied by 1 or more.
    """
    twice_max = 2 * max(scale_of(first), scale_of(second))
    factor = twice_max / ((1 << SUM_LEFT_SHIFT[output.dtype]) * scale_of(output))
    if not factor < 1:
        raise OverflowError(
            f"the output's scale {scale_of(output):g} is too small for inputs of scale {twice_max / 2:g}"
        )
    return BinaryRescales(
        (quantize_multiplier(scale_of(first) / twice_max), quantize_multiplier(scale_of(second) / twice_max)),
        quantize_multiplier(factor),
    )


def squared_difference_rescales(first: Tensor, second: Tensor, output: Tensor) -> BinaryRescales:
    """Return the three rescalings of a quantised SQUARED_DIFFERENCE; raises ``OverflowError`` for a huge factor."""
    twice_max = 2 * max(scale_of(first), scale_of(second))
    factor = twice_max * twice_max / ((1 << 2 * DIFFERENCE_LEFT_SHIFT[output.dtype]) * scale_of(output))
    return BinaryRescales(
        (quantize_multiplier(scale_of(first) / twice_max), quantize_multiplier(scale_of(second) / twice_max)),
        quantize_multiplier(factor),
    )


def multiply_rescale(first: Tensor, second: Tensor, output: Tensor) -> Rescale:
    """Return the rescaling of a product of stored values without zero points; raises ``OverflowError``."""
    return quantize_multiplier(scale_of(first) * scale_of(second) / scale_of(output))


def divide_rescale(first: Tensor, second: Tensor, output: Tensor, *, rounded: bool) -> Rescale:
    """Return the rescaling of a quotient of stored values without zero points (DIV).

    It is computed in double for int8, as in TensorFlow Lite Micro, and in float32 for int16 or with ``rounded``, as in
    LiteRT. Raises ``OverflowError`` if a quotient could exceed 32 bits.
    """
    kind = np.float32 if rounded or output.dtype is DType.INT16 else np.float64
    dividend, divisor, unit = (kind(scale_of(tensor)) for tensor in (first, second, output))
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        rescale = quantize_multiplier(float(dividend / (divisor * unit)))
    if rescale.shift > 31 - 8 * output.dtype.size:
        raise OverflowError(f"the output's scale {scale_of(output):g} is too small for a quotient")
    return rescale


def _divide_float32(x: float, y: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(x) / np.float32(y))


def ratio_rescale(source: Tensor, output: Tensor) -> Rescale:
    """Return the rescaling from the scale of ``source`` to that of ``output``, computed in float32 (NEG)."""
    return quantize_multiplier(_divide_float32(scale_of(source), scale_of(output)))


def leaky_rescale(source: Tensor, output: Tensor, alpha: float) -> Rescale:
    """Return the rescaling of negative values of a LEAKY_RELU by the magnitude of ``alpha``."""
    return quantize_multiplier(scale_of(source) * abs(alpha) / scale_of(output))


def prelu_rescales(source: Tensor, alpha: Tensor, output: Tensor) -> tuple[Rescale, Rescale]:
    """Return the rescalings of positive values, and of negative ones times their factors."""
    return quantize_multiplier(scale_of(source) / scale_of(output)), multiply_rescale(source, alpha, output)


def comparison_rescale(tensor: Tensor) -> Rescale:
    """Return the rescaling of a stored value, shifted left, to a real number, for comparisons such as EQUAL.

    Raises ``OverflowError`` for a scale of 1 or more, because the product might not fit into 32 bits.
    """
    if scale_of(tensor) >= 1:
        raise OverflowError(f"the scale {scale_of(tensor):g} of {tensor.name!r} is too large to compare")
    return quantize_multiplier(scale_of(tensor))
