"""int8 CONV_2D and FULLY_CONNECTED for cores with Thumb instructions and without SIMD."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Array
from mlfbuild.native.graph.ops import Conv2D, FullyConnected
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall, Parameter
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.dsp import is_of_few_rows, spare_memory
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.parameters import packed_filter, reads, scratch, writes
from mlfbuild.native.lowering.common.thumb import GROUP, ThumbChannels, pack_channels, pack_fours, thumb_channels
from mlfbuild.native.lowering.common.window import static_struct_lines, window_fields
from mlfbuild.native.lowering.convolution.conv2d_dsp import padding_pixel
from mlfbuild.native.lowering.trained import trained

_Layer = Weighted[Conv2D | FullyConnected]

_WORD = 4
_BLOCKS = {4: 1280, 2: 1024}
"""Pixels that are computed together -> bytes of scratch memory for them that are always accepted.

Two pixels need half the memory and 15 % more instructions; without scratch memory, a convolution takes 60 % more.
"""
_FEWEST = 2


def lower_thumb(layer: _Layer) -> KernelCall | str:
    """Return the call of a kernel for products of matrices if the layer is one, or of a kernel for any window.

    A reason if sums would not be exact.
    """
    channels = _channels(layer)
    if channels is None:
        return NOT_EXACT
    block = _block(layer, channels)
    # Kernels without scratch memory read the weights of four channels in a word.
    direct = layer.output.shape[-1] >= GROUP and (block is None or layer.rows == 1)
    if isinstance(layer.operator, FullyConnected) and direct:
        return KernelCall("fully_connected", "fully_connected_thumb.h", _parameters(layer, channels, direct=True), (
            *_matmul_lines(layer, channels, block or _FEWEST),
            "mlf_fully_connected_int8_thumb(&matmul, input, filter, output);",
        ))  # fmt: skip
    if layer.is_pointwise:
        return _matmul(layer, block or _FEWEST, channels)
    direct = direct and block is None
    block = block or _FEWEST
    kernel, arguments = "conv2d", "&window, &matmul, input, filter, padding, output, scratch"
    if direct:
        kernel, arguments = "conv2d_direct", arguments.removesuffix(", scratch")
    return KernelCall("conv2d", "fully_connected_thumb.h" if direct else "conv2d_thumb.h", (
        *_parameters(layer, channels, direct=direct),
        padding_pixel(layer),
        *([] if direct else [scratch("int32_t", _scratch(block, channels))]),
    ), (
        *static_struct_lines("mlf_window", "window", window_fields(layer.node, layer.window, *layer.images)),
        *_matmul_lines(layer, channels, block),
        f"mlf_{kernel}_int8_thumb({arguments});",
    ))  # fmt: skip


def _matmul(layer: _Layer, block: int, channels: ThumbChannels) -> KernelCall:
    memory = scratch("int32_t", _scratch(block, channels))
    return KernelCall(layer.word, "matmul_thumb.h", (*_parameters(layer, channels, direct=False), memory), (
        *_matmul_lines(layer, channels, block),
        "mlf_matmul_int8_thumb(&matmul, input, filter, output, scratch);",
    ), (0,))  # fmt: skip


def _channels(layer: _Layer) -> ThumbChannels | None:
    """Return the constants of the output channels; ``None`` if the portable kernel must compute them."""
    if layer.weights.data is None:
        return None
    return thumb_channels(layer.matrix, layer.folded_bias(), layer.rescales, zero_point(layer.output), layer.clamp[0])


def _block(layer: _Layer, channels: ThumbChannels) -> int | None:
    """Return the number of pixels whose packed inputs fit in memory that is not needed for tensors, if any."""
    # In a chain, placeholders for complete images would permit scratch memory of any size.
    spare = 0 if is_of_few_rows(layer.graph) else spare_memory(layer.graph, layer.node)
    for block, accepted in _BLOCKS.items():
        if block <= max(layer.rows, _FEWEST) and _scratch(block, channels) <= max(accepted, spare):
            return block
    return None


def _scratch(pixels: int, channels: ThumbChannels) -> int:
    return pixels // 2 * _WORD * int(channels.weights.shape[1])


def _matmul_lines(layer: _Layer, channels: ThumbChannels, block: int) -> Sequence[str]:
    """Return the local ``matmul``, which is static, so that kernels are not specialised for it."""
    minimum, maximum = layer.bounds
    return static_struct_lines("mlf_matmul_thumb", "matmul", {
        "rows": layer.rows,
        "inputs": layer.inputs,
        "outputs": layer.output.shape[-1],
        "rounding": trained(2 * zero_point(layer.output) + 1),
        "minimum": minimum,
        "maximum": maximum,
        "positive": trained(int(channels.positive)),
        "pixels": block,
    })  # fmt: skip


def _parameters(layer: _Layer, channels: ThumbChannels, *, direct: bool) -> tuple[Parameter, ...]:
    def pack(channels: ThumbChannels) -> npt.NDArray[np.int32]:
        return pack_fours(channels, layer.inputs) if direct else pack_channels(channels)

    def again() -> Array | None:
        channels = _channels(layer)
        return None if channels is None else pack(channels)

    layout = "dot_1x4_thumb.h" if direct else "dot_4x1_thumb.h"
    filter_ = packed_filter(Constant.packed(pack(channels), layout, again))
    return reads("input", layer.source), filter_, writes("output", layer.output)
