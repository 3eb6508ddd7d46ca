"""CONV_2D and FULLY_CONNECTED of int16 activations for cores with DSP instructions: ``dot_3x2_int16_dsp.h``.

These kernels add in 32 bits and rescale in one instruction. This is exact only if sums fit and factors are small
enough, which ``narrow_channels`` checks with the weights, biases and scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Array, fine_multiplier, wide_rescale
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall, struct_lines
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.parameters import packed_filter, reads, scratch, writes
from mlfbuild.native.lowering.common.window import window_lines
from mlfbuild.native.lowering.convolution.conv2d_dsp import READ_AGAIN, copied_field, with_copy

Int64Array = npt.NDArray[np.int64]

PIXELS = 3
"""Pixels that are computed together."""
_GROUP = 4
"""Inputs to whose multiple rows are filled up."""
INT16 = 2
"""Bytes of an input."""


@dataclass(frozen=True)
class NarrowChannels:
    """Output channels whose sums fit 32 bits; int64 arrays with one element a channel."""

    weights: Int64Array
    """[channels, inputs]: the given weights, but zeros for channels whose output is constant."""
    bias: Int64Array
    multiplier: Int64Array
    """The factor times 2**32."""


def narrow_channels(
    weights: Array, layer: Weighted[Conv2D | DepthwiseConv2D | FullyConnected]
) -> NarrowChannels | None:
    """Return the constants of the channels of ``layer`` with int8 ``weights`` [channels, inputs].

    ``None`` if a sum may need more than 32 bits, or a factor is neither 0, between 2**-18 and 1/2, nor ``fine``.
    """
    bias, rescales = layer.bias, layer.rescales
    wide = weights.astype(np.int64)
    offset = np.zeros(len(wide), np.int64) if bias is None else bias.reshape(-1).astype(np.int64)
    # The worst inputs: -32768 for each weight, with the sign that adds up.
    products = np.abs(wide).sum(axis=1) << 15
    if (products + np.abs(offset)).max() >= 1 << 31:
        return None
    if layer.operator.fine:
        return NarrowChannels(wide, offset, np.array([fine_multiplier(rescale) for rescale in rescales], np.int64))
    factors = [wide_rescale(rescale) for rescale in rescales]
    multiplier = np.array([factor.multiplier for factor in factors], np.int64)
    shift = np.array([factor.right_shift for factor in factors], np.int64)
    half = np.left_shift(np.int64(1), shift - 1)
    low, high = ((sums * multiplier + half) >> shift for sums in (offset - products, offset + products))
    # A constant output c is computed as a quarter of a sum of 4 c without weights. Results that wrap are not constant.
    constant = (low == high) & (np.abs(low) < 1 << 29)
    if not (constant | ((shift >= 16) & (shift <= 32))).all():
        return None
    # SMMULR divides by 2**32, so the shift is a part of the multiplier; 15 bits leave 16 for it.
    multiplier = multiplier << np.clip(32 - shift, 0, 16)
    return NarrowChannels(
        np.where(constant[:, None], 0, wide),
        np.where(constant, 4 * low, offset),
        np.where(constant, 1 << 30, multiplier),
    )


def pack_int16(channels: NarrowChannels) -> npt.NDArray[np.int32] | None:
    """Return the filter of ``channels`` as ``kernels/dsp/dot_3x2_int16_dsp.h`` reads it; ``None`` for one channel."""
    count = len(channels.bias)
    if count < 2:
        return None
    even = np.array([*range(0, count - 1, 2), *([count - 2] if count % 2 else [])])
    odd = even + 1
    padded = np.pad(channels.weights, ((0, 0), (0, -channels.weights.shape[1] % _GROUP)))
    parameters = [channels.multiplier[even], channels.multiplier[odd], channels.bias[even], channels.bias[odd]]
    weights = np.stack([padded[even], padded[odd]], axis=2).astype(np.int8).reshape(len(even), -1).view("<i4")
    return np.concatenate([np.stack(parameters, axis=1).astype(np.int32), weights], axis=1).reshape(-1)


def lower_int16_dsp(layer: Weighted[Conv2D | FullyConnected]) -> KernelCall | str:
    """Return the call of a kernel of ``conv2d_int16_dsp.h``, or the reason why the portable kernel must do it."""
    channels = narrow_channels(layer.matrix, layer) if layer.sums_are_wide else None
    packed = None if channels is None else pack_int16(channels)
    if packed is None:
        return NOT_EXACT
    filter_ = Constant.packed(packed, "dot_3x2_int16_dsp.h")
    groups = -(-layer.inputs // _GROUP)
    # A row is filled up to whole groups.
    size = (PIXELS if layer.rows >= PIXELS else 1) * groups * _GROUP * INT16

    def body(copied: int) -> tuple[str, ...]:
        if layer.is_pointwise:
            return (*matmul_lines(layer, copied), "mlf_matmul_int16_dsp(&matmul, input, filter, output, scratch);")
        return (
            *window_lines(layer.node, layer.window, *layer.images),
            *matmul_lines(layer, copied),
            "mlf_conv2d_int16_dsp(&window, &matmul, input, filter, output, scratch);",
        )

    lines, grown = body(0), None
    if layer.is_pointwise and layer.rows < PIXELS and layer.inputs % _GROUP == 0:
        size, lines = 0, (*matmul_lines(layer), "mlf_matvec_int16_dsp(&matmul, input, filter, output);")
    elif layer.rows >= READ_AGAIN and layer.output.shape[-1] % 2 == 0:
        grown = partial(with_copy, size, 4 * (4 + 2 * groups), layer.output.shape[-1] // 2, body)
    return KernelCall(layer.word, "conv2d_int16_dsp.h", (
        reads("input", layer.source),
        packed_filter(filter_),
        writes("output", layer.output),
        *([scratch("int16_t", size)] if size else []),
    ), lines, (0,) if layer.is_pointwise and size else (), grown=grown)  # fmt: skip


def matmul_lines(layer: Weighted[Conv2D | FullyConnected], copied: int = 0) -> Sequence[str]:
    """Return the local ``matmul`` of rows times a filter, of which so many pairs of channels are ``copied``."""
    minimum, maximum = layer.bounds
    fields: dict[str, object] = {"rows": layer.rows, "inputs": layer.inputs, "outputs": layer.output.shape[-1]}
    fields |= {"minimum": minimum, "maximum": maximum}
    return struct_lines("mlf_matmul_int16_dsp", "matmul", {**fields, **copied_field(copied)})
