"""Rules of operators with weights, which are constant or float32 filters: combinations of types, width of sums.

int8 activations have int8 weights, an int32 bias and 32-bit sums; weights with one scale may have a zero point, as
those of uint8 networks have. int16 activations also have int8 weights; their sums have the width of the bias, 32 or 64
bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.quantize import Rescale
from mlfbuild.native.graph.tensors import DType, Inputs, Tensor
from mlfbuild.native.graph.wide_sums import LARGEST_SUM, fine_multiplier, wide_rescale

TYPES = (DType.INT8, DType.INT16, DType.FLOAT32)
"""Types of activations."""

_LARGEST_PRODUCT = 1 << 22
"""The product of an int16 and an int8."""

# The limit of GetQuantizedConvolutionMultipler in TensorFlow Lite.
_LARGEST_DIFFERENCE = 0.02
"""Between the scale of a bias and that of the products, relative to the output's scale."""


def check(
    source: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    output: Tensor,
    axis: int,
    int16_biases: Sequence[DType] = (DType.INT64,),
    *,
    computed: bool = False,
) -> rules.Reason:
    """Return why these types, scales or constants do not fit; dimension ``axis`` of ``weights`` is the channels.

    ``int16_biases`` are the possible types of a bias if activations are int16. With ``computed``, float32 weights need
    not be constant.
    """
    channels = weights.shape[axis] if axis < len(weights.shape) else 0
    biases = int16_biases if source.dtype is DType.INT16 else None
    return (
        rules.arithmetic(source, output, types=TYPES)
        or _check_weights(source, weights)
        or rules.parameters(weights, bias, channels, axis, biases, offset=source.dtype is DType.INT8, computed=computed)
        or (_check_range(weights, bias, channels) if source.dtype is DType.INT16 else None)
        or (_check_bias(source, weights, bias, output) if source.dtype in rules.QUANTIZED else None)
    )


def check_integers(inputs: Inputs, outputs: Sequence[Tensor]) -> rules.Reason:
    """Return why int8 numbers, their zero point, constant weights and optional offsets do not fit an int32 result."""
    (_, zero_point, weights), offsets = inputs[:3], inputs.optional(3)
    return (
        rules.first(rules.typed(tensor, DType.INT8) for tensor in inputs[:3].present)
        or rules.typed(outputs[0], DType.INT32)
        or (None if zero_point.elements == 1 else f"{zero_point} should have one element")
        or (None if weights.constant else f"{weights} must be constant")
        or (None if offsets is None else _check_offsets(offsets, weights))
    )


def _check_offsets(offsets: Tensor, weights: Tensor) -> rules.Reason:
    return (
        rules.typed(offsets, DType.INT32)
        or rules.shape(offsets, weights.shape[:1])
        or (None if offsets.constant else f"{offsets} must be constant")
    )


def _check_weights(source: Tensor, weights: Tensor) -> rules.Reason:
    if source.dtype is not DType.INT16:
        return None if weights.dtype is source.dtype else f"mixes {source} and {weights}"
    return None if weights.dtype is DType.INT8 else f"the weights {weights} over {source} must be int8"


def _check_bias(source: Tensor, weights: Tensor, bias: Tensor | None, output: Tensor) -> rules.Reason:
    """Return why ``bias`` cannot be added to sums of products by TFLite's rule; a bias without a scale has theirs."""
    affine = None if bias is None else bias.quantization
    if bias is None or affine is None or weights.quantization is None:
        return None
    if any(affine.zero_points):
        return f"the bias {bias} has a zero point that is not 0"
    if bias.data is not None and not bias.data.any():  # the scale of zeros has no meaning; layers may share them
        return None
    scales = np.array(weights.quantization.scales) * source.affine.scale
    if len(affine.scales) not in {1, len(scales)} and len(scales) != 1:
        return f"the bias {bias} has {len(affine.scales)} scales, the weights {weights} have {len(scales)}"
    given, wanted = np.broadcast_arrays(np.array(affine.scales), scales)
    wrong = np.flatnonzero(np.abs(given - wanted) > _LARGEST_DIFFERENCE * output.affine.scale)
    if wrong.size == 0:
        return None
    return (
        f"the bias {bias} has the scale {given[wrong[0]]:g}, which should be that of the input times that of the "
        f"weights, {wanted[wrong[0]]:g}"
    )


def _check_range(weights: Tensor, bias: Tensor | None, channels: int) -> rules.Reason:
    if _largest_products(weights, channels) > LARGEST_SUM // 2:
        return f"the weights {weights} have more products for a channel than 48 bits can add"
    if _largest_value(bias) >= LARGEST_SUM // 2:
        return f"the bias {bias} has a value of 2**46 or more"
    return None


def has_room(weights: Tensor, bias: Tensor | None, channels: int) -> bool:
    """Return whether ``bias`` may include any sum of the products of int16 inputs and int8 ``weights``.

    Both together must stay below half of what the kernels for int16 add up in, so that no addition can overflow.
    ``channels`` is the number of output channels.
    """
    return _largest_value(bias) + _largest_products(weights, channels) < LARGEST_SUM // 2


def _largest_products(weights: Tensor, channels: int) -> int:
    return weights.elements // channels * _LARGEST_PRODUCT


def _largest_value(bias: Tensor | None) -> float:
    return 0.0 if bias is None or bias.data is None else float(np.abs(bias.data.astype(np.float64)).max())


def sums_are_wide(source: Tensor, bias: Tensor | None, *, int32_sums: bool = False) -> bool:
    """Return whether sums have 64 bits; if there is no bias, ``int32_sums`` decides.

    Only int16 activations can have them. A bias decides by its type: int64 is added to sums of 64 bits, int32 to sums
    of 32 bits.
    """
    if source.dtype is not DType.INT16:
        return False
    return not int32_sums if bias is None else bias.dtype is not DType.INT32


def check_fine(weights: Tensor, bias: Tensor | None, axis: int, rescales: Sequence[Rescale]) -> None:
    """Raise ``OverflowError`` if sums of int16 may exceed 32 bits or a factor is too large for ``fine``.

    ``fine`` factors have 32 bits after the point and are less than 1/2. The largest sum is that of the worst inputs,
    -32768 for every weight; ``axis`` is the dimension of the output channels.
    """
    if weights.data is None:
        raise OverflowError("the weights are computed")
    matrix = np.abs(np.moveaxis(weights.data, axis, 0).astype(np.int64)).reshape(weights.shape[axis], -1)
    # The worst inputs: -32768 for every weight, with the sign that adds up.
    if (matrix.sum(axis=1) << 15).max(initial=0) + _largest_value(bias) >= 1 << 31:
        raise OverflowError("sums may exceed 32 bits")
    for rescale in rescales:
        fine_multiplier(rescale)


def check_rescales(rescales: Sequence[Rescale], *, wide: bool) -> None:
    """Raise ``OverflowError`` if ``rescales`` do not apply to sums of this width.

    Sums of 64 bits have multipliers of 16 bits, for which some factors have no form; sums of 32 bits take every
    ``Rescale``.
    """
    if wide:
        for rescale in rescales:
            wide_rescale(rescale)
