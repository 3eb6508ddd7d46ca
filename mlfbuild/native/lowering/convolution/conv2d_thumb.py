"""int8 CONV_2D and FULLY_CONNECTED for cores with Thumb instructions and without SIMD."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Array, Graph, Node, Tensor, activation_range
from mlfbuild.native.graph.bases import convolution_tensors
from mlfbuild.native.graph.ops import Conv2D, FullyConnected
from mlfbuild.native.lowering.call import (
    NOT_EXACT,
    Constant,
    KernelCall,
    Parameter,
    ScratchBuffer,
    folded_bias,
    struct_lines,
)
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.dsp import is_of_few_rows, spare_memory
from mlfbuild.native.lowering.common.thumb import (
    GROUP,
    ThumbChannels,
    pack_channels,
    pack_fours,
    thumb_channels,
)
from mlfbuild.native.lowering.common.window import window_lines

_WORD = 4
_BLOCKS = {4: 1280, 2: 1024}
"""Pixels that are computed together -> bytes of scratch memory for them that are always accepted.

Two pixels need half the memory and 15 % more instructions; without scratch memory, a convolution takes 60 % more.
"""
_FEWEST = 2


def lower_conv2d_thumb(graph: Graph, node: Node, operator: Conv2D) -> KernelCall | str:
    """Return the call of ``mlf_matmul_int8_thumb`` for 1x1 with stride 1, or of a kernel for any window.

    A reason if sums would not be exact.
    """
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    channels = _channels(graph, node)
    if channels is None:
        return NOT_EXACT
    pixels = output.elements // output.shape[3]
    pointwise = weights.shape[1:3] == (1, 1) and operator.stride == (1, 1) and operator.padding == ((0, 0), (0, 0))
    block = _block(graph, node, pixels, channels)
    # The kernel without scratch memory reads the weights of four channels in a word.
    direct = block is None and not pointwise and output.shape[3] >= GROUP
    block = block or _FEWEST
    matmul = _matmul_lines(operator, pixels, weights, channels, output, block)
    if pointwise:
        return _matmul(graph, node, "conv2d", matmul, block, channels)
    padding = Constant.array("padding", "int8_t", np.full(source.shape[3], zero_point(source), np.int8))
    window = window_lines(node, operator.window(weights), source, output)
    kernel, arguments = "conv2d", "&window, &matmul, input, filter, padding, output, scratch"
    if direct:
        kernel, arguments = "conv2d_direct", arguments.removesuffix(", scratch")
    return KernelCall("conv2d", "fully_connected_thumb.h" if direct else "conv2d_thumb.h", (
        *_parameters(graph, node, channels, direct=direct),
        Parameter("const int8_t *", "padding", padding),
        *_scratch_parameter(0 if direct else block, channels),
    ), (
        f"static {window[0]}", *window[1:], *matmul,
        f"mlf_{kernel}_int8_thumb({arguments});",
    ))  # fmt: skip


def lower_fully_connected_thumb(graph: Graph, node: Node, operator: FullyConnected) -> KernelCall | str:
    """Return the call of ``mlf_fully_connected_int8_thumb``, or of ``mlf_matmul_int8_thumb`` for several rows.

    A reason if sums would not be exact.
    """
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    channels = _channels(graph, node)
    if channels is None:
        return NOT_EXACT
    outputs, inputs = weights.shape
    rows = source.elements // inputs
    block = _block(graph, node, rows, channels)
    matmul = _matmul_lines(operator, rows, weights, channels, output, block or _FEWEST)
    if outputs >= GROUP and (rows == 1 or block is None):
        parameters = _parameters(graph, node, channels, direct=True)
        return KernelCall("fully_connected", "fully_connected_thumb.h", parameters, (
            *matmul,
            "mlf_fully_connected_int8_thumb(&matmul, input, filter, output);",
        ))  # fmt: skip
    return _matmul(graph, node, "fully_connected", matmul, block or _FEWEST, channels)


def _matmul(
    graph: Graph, node: Node, word: str, matmul: Sequence[str], block: int, channels: ThumbChannels
) -> KernelCall:
    return KernelCall(word, "matmul_thumb.h", (
        *_parameters(graph, node, channels, direct=False), *_scratch_parameter(block, channels)
    ), (
        *matmul,
        "mlf_matmul_int8_thumb(&matmul, input, filter, output, scratch);",
    ), (0,))  # fmt: skip


def _channels(graph: Graph, node: Node) -> ThumbChannels | None:
    """Return the constants of the output channels of ``node``; ``None`` if the portable kernel must compute them."""
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    operator = node.operator
    assert isinstance(operator, Conv2D | FullyConnected)
    if weights.data is None:
        return None
    folded = folded_bias(None if bias is None else bias.data, weights.data, 0, zero_point(source))
    minimum, _ = activation_range(operator.activation, output)
    matrix = weights.data.reshape(weights.shape[0], -1)
    return thumb_channels(matrix, folded, operator.rescales(source, weights, output), zero_point(output), minimum)


def _block(graph: Graph, node: Node, pixels: int, channels: ThumbChannels) -> int | None:
    """Return the number of pixels whose packed inputs fit in memory that is not needed for tensors, if any."""
    # In a chain, placeholders for complete images would permit scratch memory of any size.
    spare = 0 if is_of_few_rows(graph) else spare_memory(graph, node)
    for block, accepted in _BLOCKS.items():
        if block <= max(pixels, _FEWEST) and _scratch(block, channels) <= max(accepted, spare):
            return block
    return None


def _scratch(pixels: int, channels: ThumbChannels) -> int:
    return pixels // 2 * _WORD * int(channels.weights.shape[1])


def _scratch_parameter(pixels: int, channels: ThumbChannels) -> tuple[Parameter, ...]:
    buffer = ScratchBuffer(_scratch(pixels, channels))
    return (Parameter("int32_t *", "scratch", buffer),) if pixels else ()


def _matmul_lines(
    operator: Conv2D | FullyConnected,
    rows: int,
    weights: Tensor,
    channels: ThumbChannels,
    output: Tensor,
    block: int,
) -> Sequence[str]:
    """Return the local ``matmul``, which is static, so that kernels are not specialised for it."""
    minimum, maximum = activation_range(operator.activation, output)
    fields = {
        "rows": str(rows),
        "inputs": str(weights.elements // weights.shape[0]),
        "outputs": str(output.shape[-1]),
        "rounding": str(2 * zero_point(output) + 1),
        "minimum": str(minimum),
        "maximum": str(maximum),
        "positive": str(int(channels.positive)),
        "pixels": str(block),
    }
    lines = struct_lines("mlf_matmul_thumb", "matmul", fields)
    return (f"static {lines[0]}", *lines[1:])


def _parameters(graph: Graph, node: Node, channels: ThumbChannels, *, direct: bool) -> tuple[Parameter, ...]:
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))

    def pack(channels: ThumbChannels) -> npt.NDArray[np.int32]:
        return pack_fours(channels, weights.elements // weights.shape[0]) if direct else pack_channels(channels)

    def again() -> Array | None:
        channels = _channels(graph, node)
        return None if channels is None else pack(channels)

    layout = "dot_1x4_thumb.h" if direct else "dot_4x1_thumb.h"
    return (
        Parameter("const int8_t *", "input", source.name),
        Parameter("const int32_t *", "filter", Constant.packed(pack(channels), layout, again)),
        Parameter("int8_t *", "output", output.name),
    )
