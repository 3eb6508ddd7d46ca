"""Rescalings of operators on two tensors: inputs to a common scale, and the result to the output's scale.

Stored values of two tensors cannot be added while their scales differ. TensorFlow Lite Micro therefore brings both to a
common scale first, with as many spare bits as fit into 32, and brings the sum to the scale of the output::

    x' = (x - zero point of x) * 2**left * scale of x / (2 * larger scale)
    y' = (y - zero point of y) * 2**left * scale of y / (2 * larger scale)
    output = zero point + (x' + y') * 2 * larger scale / (2**left * scale of the output)

Each of the three products is a rescaling of ``quantize.py``, with its two roundings. The factors:

- Of the inputs: at most 1/2, so that the sum of both has no more bits than one shifted input, and fits.
- ``left`` is 20 for int8, whose differences from the zero point have 8 bits and a sign, and 15 for int16.
- SQUARED_DIFFERENCE squares the difference, which must fit into 32 bits: ``left`` is 7 for int8, and 0 for int16.
- Comparisons shift by 8 and compare x * scale * 2**8. A scale of 1 or more is refused, as it might exceed 32 bits.

Sources: tensorflow/lite/micro/kernels/add_common.cc, sub_common.cc, squared_difference.cc and comparisons.cc.

For example, 3 of scale 0.5 plus 5 of scale 0.25, int8 with zero points of 0, and an output of scale 1, which is 2.75::

    factors      0.5 / (2 * 0.5) = 1/2             0.25 / (2 * 0.5) = 1/4           2 * 0.5 / 2**20 = 2**-20
    x', y'       3 * 2**20 / 2 = 1572864           5 * 2**20 / 4 = 1310720
    output       (1572864 + 1310720) / 2**20 = 2.75, stored as 3

A product needs no common scale: MUL and PRELU have one factor for the product of both differences
(``multiply_rescale``). DIV has one for the quotient, of which the kernel first computes as many bits as fit.

The traps:

- The larger scale is doubled in both directions, which cancels out, but decides which factors are exact. Any other
  common scale gives other roundings.
- ADD with an output's scale so small that the last factor is 1 or more is refused (``OverflowError``), because the
  reference requires a smaller one (``QuantizeMultiplierSmallerThanOneExp``).
- NEG and int16 DIV compute their factor in float32, as their references do; its last bits differ from double.

The functions do not check types or shapes, which ``Operator.check`` of each operator does. Kernels that compute an int8
ADD with fewer roundings are in ``lowering/arithmetic``; they are used only if all 65,536 results are these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlfbuild.native.graph.quantize import Rescale, quantize_multiplier
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
    # Twice the larger scale, so that each factor is at most 1/2 and the sum of two inputs fits.
    twice_max = 2 * max(first.affine.scale, second.affine.scale)
    factor = twice_max / ((1 << SUM_LEFT_SHIFT[output.dtype]) * output.affine.scale)
    if not factor < 1:
        raise OverflowError(
            f"the output's scale {output.affine.scale:g} is too small for inputs of scale {twice_max / 2:g}"
        )
    return BinaryRescales(
        (quantize_multiplier(first.affine.scale / twice_max), quantize_multiplier(second.affine.scale / twice_max)),
        quantize_multiplier(factor),
    )


def squared_difference_rescales(first: Tensor, second: Tensor, output: Tensor) -> BinaryRescales:
    """Return the three rescalings of a quantised SQUARED_DIFFERENCE; raises ``OverflowError`` for a huge factor.

    The factor of the output is (2 * larger scale)**2 divided by 2**(2 * left shift) and the output's scale.
    """
    twice_max = 2 * max(first.affine.scale, second.affine.scale)
    # The square has the square of the common scale, and twice the left shift.
    factor = twice_max * twice_max / ((1 << 2 * DIFFERENCE_LEFT_SHIFT[output.dtype]) * output.affine.scale)
    return BinaryRescales(
        (quantize_multiplier(first.affine.scale / twice_max), quantize_multiplier(second.affine.scale / twice_max)),
        quantize_multiplier(factor),
    )


def multiply_rescale(first: Tensor, second: Tensor, output: Tensor) -> Rescale:
    """Return the rescaling of a product of stored values without zero points; raises ``OverflowError``.

    ``scale of first * scale of second / scale of output``, in double, as MUL of TensorFlow Lite Micro.
    """
    return quantize_multiplier(first.affine.scale * second.affine.scale / output.affine.scale)


def divide_rescale(first: Tensor, second: Tensor, output: Tensor, *, rounded: bool) -> Rescale:
    """Return the rescaling of a quotient of stored values without zero points (DIV).

    It is computed in double for int8, as in TensorFlow Lite Micro, and in float32 for int16 or with ``rounded``, as in
    LiteRT. Raises ``OverflowError`` if a quotient could exceed 32 bits.
    """
    # The last bit of the quotient decides the last bit of the multiplier.
    kind = np.float32 if rounded or output.dtype is DType.INT16 else np.float64
    dividend, divisor, unit = (kind(tensor.affine.scale) for tensor in (first, second, output))
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        rescale = quantize_multiplier(float(dividend / (divisor * unit)))
    if rescale.shift > 31 - 8 * output.dtype.size:
        raise OverflowError(f"the output's scale {output.affine.scale:g} is too small for a quotient")
    return rescale


def _divide_float32(x: float, y: float) -> float:
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(x) / np.float32(y))


def ratio_rescale(source: Tensor, output: Tensor) -> Rescale:
    """Return the rescaling from the scale of ``source`` to that of ``output``, computed in float32 (NEG).

    LiteRT divides the scales of NEG in float32, so that the factor may differ in its last bits from that of
    ``requantize_rescale``. Raises ``OverflowError`` if it is more than 2**30.
    """
    return quantize_multiplier(_divide_float32(source.affine.scale, output.affine.scale))


def leaky_rescale(source: Tensor, output: Tensor, alpha: float) -> Rescale:
    """Return the rescaling of negative values of a LEAKY_RELU by the magnitude of ``alpha``.

    The sign of ``alpha`` is not part of the factor: the caller negates the result.
    """
    return quantize_multiplier(source.affine.scale * abs(alpha) / output.affine.scale)


def prelu_rescales(source: Tensor, alpha: Tensor, output: Tensor) -> tuple[Rescale, Rescale]:
    """Return the rescalings of positive values, and of negative ones times their factors.

    The first factor is input scale / output scale, the second one also has the scale of ``alpha``.
    """
    return quantize_multiplier(source.affine.scale / output.affine.scale), multiply_rescale(source, alpha, output)


def comparison_rescale(tensor: Tensor) -> Rescale:
    """Return the rescaling of a stored value, shifted left, to a real number, for comparisons such as EQUAL.

    Raises ``OverflowError`` for a scale of 1 or more, because the product might not fit into 32 bits.
    """
    if tensor.affine.scale >= 1:
        raise OverflowError(f"the scale {tensor.affine.scale:g} of {tensor.name!r} is too large to compare")
    return quantize_multiplier(tensor.affine.scale)
