"""CONV_2D and FULLY_CONNECTED of int16 activations for Helium (MVE): ``kernels/mve/conv2d_int16_mve.h``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph import Graph, Node, Rescale, Tensor
from mlfbuild.native.graph.bases import convolution_tensors
from mlfbuild.native.graph.ops import Conv2D, FullyConnected
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall, Parameter, ScratchBuffer
from mlfbuild.native.lowering.common.window import window_lines
from mlfbuild.native.lowering.convolution.conv2d_int16_dsp import matmul_lines, narrow_channels

_PIXELS = 3
_INT16 = 2


def lower_conv2d_int16_mve(graph: Graph, node: Node, operator: Conv2D) -> KernelCall | str:
    """Return the call of a kernel of ``conv2d_int16_mve.h``, or the reason why another kernel must do it."""
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    wide, rescales = operator.sums_are_wide(source, bias), operator.rescales(source, weights, output)
    constants = _constants(weights, bias, rescales, fine=operator.fine) if wide else None
    if constants is None:
        # Narrow sums (32 bits) are done by the DSP kernel, whose instructions MVE cores have.
        return NOT_EXACT
    pixels, inputs = output.elements // output.shape[3], weights.elements // weights.shape[0]
    if weights.shape[1:3] == (1, 1) and operator.stride == (1, 1) and operator.padding == ((0, 0), (0, 0)):
        return _matmul(operator, "conv2d", pixels, (source, weights, output), constants)
    # Three pixels are computed together; an image of fewer has one at a time.
    block = _PIXELS if pixels >= _PIXELS else 1
    # A 1x1 filter reads the image as a matrix: no copy is necessary.
    parameters = (
        *_parameters(source, constants, output),
        Parameter("int16_t *", "scratch", ScratchBuffer(block * inputs * _INT16)),
    )
    return KernelCall("conv2d", "conv2d_int16_mve.h", parameters, (
        *window_lines(node, operator.window(weights), source, output),
        *matmul_lines(operator, pixels, inputs, output),
        "mlf_conv2d_int16_mve(&window, &matmul, input, filter, channels, output, scratch);",
    ))  # fmt: skip


def lower_fully_connected_int16_mve(graph: Graph, node: Node, operator: FullyConnected) -> KernelCall | str:
    """Return the call of ``mlf_matmul_int16_mve``, or the reason why another kernel must do it."""
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    wide, rescales = operator.sums_are_wide(source, bias), operator.rescales(source, weights, output)
    constants = _constants(weights, bias, rescales, fine=operator.fine) if wide else None
    if constants is None:
        return NOT_EXACT
    rows = source.elements // weights.shape[1]
    return _matmul(operator, "fully_connected", rows, (source, weights, output), constants)


def _matmul(
    operator: Conv2D | FullyConnected,
    word: str,
    rows: int,
    tensors: tuple[Tensor, Tensor, Tensor],
    constants: tuple[Constant, Constant],
) -> KernelCall:
    source, weights, output = tensors
    return KernelCall(word, "conv2d_int16_mve.h", _parameters(source, constants, output), (
        *matmul_lines(operator, rows, weights.elements // weights.shape[0], output),
        "mlf_matmul_int16_mve(&matmul, input, filter, channels, output);",
    ))  # fmt: skip


def _constants(
    weights: Tensor, bias: Tensor | None, rescales: Sequence[Rescale], *, fine: bool
) -> tuple[Constant, Constant] | None:
    """Return the filter and the biases with multipliers; ``None`` if the kernel is not exact or has one channel."""
    matrix = weights.known.reshape(weights.shape[0], -1)
    channels = narrow_channels(matrix, None if bias is None else bias.data, rescales, fine=fine)
    # The kernel computes channels in pairs.
    if channels is None or len(matrix) < 2:
        return None
    # Bias and multiplier of a channel are adjacent, in the order in which the kernel reads them.
    pairs = np.stack([channels.bias, channels.multiplier], axis=1).astype(np.int32)
    return (
        Constant.array("filter", "int8_t", channels.weights.astype(np.int8)),
        Constant.array("channels", "int32_t", pairs),
    )


def _parameters(source: Tensor, constants: tuple[Constant, Constant], output: Tensor) -> tuple[Parameter, ...]:
    return (
        Parameter("const int16_t *", "input", source.name),
        Parameter("const int8_t *", "filter", constants[0]),
        Parameter("const int32_t *", "channels", constants[1]),
        Parameter("int16_t *", "output", output.name),
    )
