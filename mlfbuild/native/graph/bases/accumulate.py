"""The first and the last step of every weighted sum: subtract the zero point, and rescale to the output.

Sums are float64. Those of int8 and int16 products are exact (below 2**53), and those of float32 are more accurate than
float32 additions in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.operator import Activation
from mlfbuild.native.graph.quantize import (
    Rescale,
    activation_range,
    float_activation_range,
    multiply_by_quantized_multiplier,
    rescale_arrays,
)
from mlfbuild.native.graph.tensors import Array, DType, Tensor
from mlfbuild.native.graph.wide_sums import rescale_fine, rescale_wide

Sums = npt.NDArray[np.float64]


def centred(tensor: Tensor, value: Array) -> Sums:
    """Return ``value`` as float64, without the zero point of a quantised ``tensor``, which is 0 per channel.

    A per-channel quantisation has no zero points but 0 (the checks of operators see to that). float64 is exact for
    every integer here, and also makes the sums that follow exact.
    """
    # Zero points of weights per channel would need a sum over the inputs per channel, which TFLite's format excludes.
    if tensor.dtype is DType.FLOAT32 or tensor.quantization is None or tensor.quantization.per_channel:
        return value.astype(np.float64)
    return value.astype(np.float64) - tensor.quantization.zero_point


def finish_float(sums: Sums, activation: Activation) -> Array:
    """Return ``sums``, clamped by ``activation``, as float32.

    The sum is rounded to float32 once, after the clamp; a sum beyond float32 becomes infinite, without a warning.
    """
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(sums, *float_activation_range(activation)), np.float32)


def finish_quantized(sums: Sums, rescales: Sequence[Rescale], output: Tensor, activation: Activation) -> Array:
    """Return integer ``sums`` (channels last) rescaled to ``output`` and clamped; accumulators wrap at 32 bits.

    ``rescales`` has one factor, or one for each channel. The result has the shape of ``sums`` and the type of
    ``output``.
    """
    scaled = multiply_by_quantized_multiplier(sums.astype(np.int64), *rescale_arrays(rescales))
    # In int64, because an int32 near its end plus the zero point would wrap before it is clamped.
    shifted = scaled.astype(np.int64) + output.affine.zero_point
    # Restore the shape, because broadcasting with the rescalings adds a dimension to a scalar.
    return np.clip(shifted, *activation_range(activation, output)).astype(output.dtype.numpy).reshape(sums.shape)


def finish_wide(
    sums: Sums, rescales: Sequence[Rescale], output: Tensor, activation: Activation, *, fine: bool = False
) -> Array:
    """Return int64 ``sums`` (channels last) rescaled to the int16 ``output`` and clamped.

    ``fine`` factors have 32 bits after the point (``rescale_fine``), others are those of 64-bit sums
    (``rescale_wide``). The rescaling includes the zero point, which is 0 for int16. The result has the shape of
    ``sums``.
    """
    scaled = (rescale_fine if fine else rescale_wide)(sums.astype(np.int64), rescales)
    return np.clip(scaled, *activation_range(activation, output)).astype(output.dtype.numpy).reshape(sums.shape)


def finish(
    sums: Sums,
    bias: Array | None,
    rescales: Sequence[Rescale],
    output: Tensor,
    activation: Activation,
    *,
    wide: bool = False,
    fine: bool = False,
) -> Array:
    """Add ``bias`` and return the result in the type of ``output``; ``rescales`` apply only to integers.

    If ``wide`` is true, integers are summed in 64 bits; their factors may be ``fine`` (``wide_sums``).

    ``sums`` are [..., channels] without zero points, ``bias`` has one number for each channel in the scale of the
    products. The result has the shape of ``sums`` and the type and quantisation of ``output``; integers are clamped to
    the range of ``activation``.
    """
    # Added as an integer before the rescaling: a bias has the scale of the products, input times weights.
    if bias is not None:
        sums = sums + bias.reshape(-1)
    if output.dtype is DType.FLOAT32:
        return finish_float(sums, activation)
    if wide:
        return finish_wide(sums, rescales, output, activation, fine=fine)
    return finish_quantized(sums, rescales, output, activation)
