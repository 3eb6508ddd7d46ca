"""int8 CONV_2D whose weights have a zero point, as those of uint8 networks, for cores with the DSP extension."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlfbuild.native.graph import Array
from mlfbuild.native.graph.ops import Conv2D
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall, Parameter
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.convolution import wide_weights
from mlfbuild.native.lowering.common.dsp import DspChannels, brief_channels, dsp_channels
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.matmul_dsp import groups_of, pack_matmul
from mlfbuild.native.lowering.convolution.conv2d_dsp import (
    BYTES,
    PIXELS,
    block_size,
    conv2d_lines,
    dsp_parameters,
    matmul_fields,
    matmul_lines,
    padding_pixel,
)
from mlfbuild.native.lowering.trained import trained

_SUMMED = 64
"""Groups of inputs whose sums are in one group."""
_LARGEST_ODD = 1 << 23
"""The bound of a sum of the second channel of a pair."""


def lower_conv2d_offset_dsp(layer: Weighted[Conv2D]) -> KernelCall | str:
    """Return the call of a kernel of ``conv2d_offset_dsp.h``; a reason if no packed filter gives exact sums."""

    def words(channels: DspChannels | None) -> Array | None:
        return None if channels is None else pack_matmul(channels, whole=False)

    channels = _channels(layer)
    packed = words(channels)
    if channels is None or packed is None:
        return NOT_EXACT
    # The usual requantisation takes two words more for each pair than the brief one.
    room = packed.nbytes + 8 * -(-len(channels.bias) // 2) if channels.brief else 0
    filter_ = Constant.packed(packed, "conv2d_offset_dsp.h", lambda: words(_channels(layer)), room=room)
    groups, depth = groups_of(layer.inputs), layer.source.shape[3]
    row = (groups + _sums(groups)) * 4 * BYTES
    matmul = {**matmul_fields(layer, brief=channels.brief), "inputs": row // BYTES}
    if layer.is_pointwise and depth % 4 == 0:
        return KernelCall("conv2d", "conv2d_offset_dsp.h", dsp_parameters(layer, filter_, PIXELS * row), (
            *matmul_lines(matmul),
            f"mlf_matmul_offset_int8_dsp(&matmul, {depth}, input, filter, output, scratch);",
        ), (0,))  # fmt: skip
    parameters: tuple[Parameter, ...]
    if depth % 4 != 0:
        block, padding, outside = PIXELS, "NULL", trained(zero_point(layer.source))
        parameters = dsp_parameters(layer, filter_, block * (row + 4 * groups))
    else:
        block, padding, outside = block_size(layer, row), "padding", "0"
        parameters = (*dsp_parameters(layer, filter_, block * row), padding_pixel(layer))
    return KernelCall("conv2d", "conv2d_offset_dsp.h", parameters, (
        *conv2d_lines(layer, matmul),
        f"mlf_conv2d_offset_int8_dsp(&conv2d, {block}, input, filter, {padding}, output, scratch, {outside});",
    ))  # fmt: skip


def _sums(groups: int) -> int:
    return -(-groups // _SUMMED)


def _channels(layer: Weighted[Conv2D]) -> DspChannels | None:
    """Return the channels with the weights of sums; ``None`` if the sum of a channel does not fit in 24 bits."""
    wide = wide_weights(layer.weights)
    rows = wide.reshape(wide.shape[0], -1)
    channels = dsp_channels(rows, layer.folded_bias(wide), layer.rescales, zero_point(layer.output))
    offset = -zero_point(layer.weights)
    if channels is None or offset > np.iinfo(np.int8).max:
        return None
    if 128 * np.abs(channels.weights.astype(np.int64)).sum(axis=1).max() >= _LARGEST_ODD:
        return None
    groups = groups_of(rows.shape[1])
    matrix = np.zeros((len(rows), 4 * (groups + _sums(groups))), np.int8)
    matrix[:, : rows.shape[1]] = layer.weights.known.reshape(rows.shape)
    matrix[:, 4 * groups :] = offset
    matrix[~channels.weights.any(axis=1)] = 0  # a channel without weights, or with a constant output
    return replace(brief_channels(channels, zero_point(layer.output)), weights=matrix)
