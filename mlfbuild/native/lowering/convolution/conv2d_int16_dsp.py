"""CONV_2D and FULLY_CONNECTED of int16 activations for cores with DSP instructions: ``dot_3x2_int16_dsp.h``.

These kernels add in 32 bits and rescale in one instruction. This is exact only if sums fit and factors are small
enough, which ``narrow_channels`` checks with the weights, biases and scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Array, Graph, Node, Rescale, Tensor, activation_range, fine_multiplier, wide_rescale
from mlfbuild.native.graph.bases import convolution_tensors
from mlfbuild.native.graph.ops import Conv2D, FullyConnected
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall, Parameter, ScratchBuffer, struct_lines
from mlfbuild.native.lowering.common.window import window_lines

Int64Array = npt.NDArray[np.int64]

_PIXELS = 3
_GROUP = 4
"""Inputs to whose multiple rows are filled up."""
_INT16 = 2


@dataclass(frozen=True)
class NarrowChannels:
    """Output channels whose sums fit 32 bits; int64 arrays with one element a channel."""

    weights: Int64Array
    """[channels, inputs]: the given weights, but zeros for channels whose output is constant."""
    bias: Int64Array
    multiplier: Int64Array
    """The factor times 2**32."""


def narrow_channels(
    weights: Array, bias: Array | None, rescales: Sequence[Rescale], *, fine: bool
) -> NarrowChannels | None:
    """Return the constants of channels with int8 ``weights`` [channels, inputs].

    ``None`` if a sum may need more than 32 bits, or a factor is neither 0, between 2**-18 and 1/2, nor ``fine``.
    """
    wide = weights.astype(np.int64)
    offset = np.zeros(len(wide), np.int64) if bias is None else bias.reshape(-1).astype(np.int64)
    # The worst inputs: -32768 for each weight, with the sign that adds up.
    products = np.abs(wide).sum(axis=1) << 15
    if (products + np.abs(offset)).max() >= 1 << 31:
        return None
    if fine:
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


def lower_conv2d_int16_dsp(graph: Graph, node: Node, operator: Conv2D) -> KernelCall | str:
    """Return the call of a kernel of ``conv2d_int16_dsp.h``, or the reason why the portable kernel must do it."""
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    pixels = output.elements // output.shape[3]
    if weights.shape[1:3] == (1, 1) and operator.stride == (1, 1) and operator.padding == ((0, 0), (0, 0)):
        return _matmul(graph, node, operator, "conv2d", pixels)
    rescales = operator.rescales(source, weights, output)
    filter_ = _filter(weights, bias, rescales, fine=operator.fine) if operator.sums_are_wide(source, bias) else None
    if filter_ is None:
        return NOT_EXACT
    inputs = weights.elements // weights.shape[0]
    block = _PIXELS if pixels >= _PIXELS else 1
    return KernelCall("conv2d", "conv2d_int16_dsp.h", _parameters(source, filter_, output, block * _row(inputs)), (
        *window_lines(node, operator.window(weights), source, output),
        *matmul_lines(operator, pixels, inputs, output),
        "mlf_conv2d_int16_dsp(&window, &matmul, input, filter, output, scratch);",
    ))  # fmt: skip


def lower_fully_connected_int16_dsp(graph: Graph, node: Node, operator: FullyConnected) -> KernelCall | str:
    """Return the call of a kernel of ``conv2d_int16_dsp.h``, or the reason why the portable kernel must do it."""
    source, weights, _, _ = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    return _matmul(graph, node, operator, "fully_connected", source.elements // weights.shape[1])


def _matmul(graph: Graph, node: Node, operator: Conv2D | FullyConnected, word: str, rows: int) -> KernelCall | str:
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    rescales = operator.rescales(source, weights, output)
    filter_ = _filter(weights, bias, rescales, fine=operator.fine) if operator.sums_are_wide(source, bias) else None
    if filter_ is None:
        return NOT_EXACT
    inputs = weights.elements // weights.shape[0]
    matmul = matmul_lines(operator, rows, inputs, output)
    if rows < _PIXELS and inputs % _GROUP == 0:
        statement = "mlf_matvec_int16_dsp(&matmul, input, filter, output);"
        return KernelCall(word, "conv2d_int16_dsp.h", _parameters(source, filter_, output, 0), (*matmul, statement))
    scratch = (_PIXELS if rows >= _PIXELS else 1) * _row(inputs)
    statement = "mlf_matmul_int16_dsp(&matmul, input, filter, output, scratch);"
    return KernelCall(
        word, "conv2d_int16_dsp.h", _parameters(source, filter_, output, scratch), (*matmul, statement), (0,)
    )


def _filter(weights: Tensor, bias: Tensor | None, rescales: Sequence[Rescale], *, fine: bool) -> Constant | None:
    matrix = weights.known.reshape(weights.shape[0], -1)
    channels = narrow_channels(matrix, None if bias is None else bias.data, rescales, fine=fine)
    packed = None if channels is None else pack_int16(channels)
    return None if packed is None else Constant.packed(packed, "dot_3x2_int16_dsp.h")


def _row(inputs: int) -> int:
    """Return the bytes of a row, filled up to whole groups."""
    return -(-inputs // _GROUP) * _GROUP * _INT16


def matmul_lines(operator: Conv2D | FullyConnected, rows: int, inputs: int, output: Tensor) -> Sequence[str]:
    """Return the local ``matmul`` of ``rows`` of ``inputs`` times a filter."""
    minimum, maximum = activation_range(operator.activation, output)
    fields = {"rows": rows, "inputs": inputs, "outputs": output.shape[-1], "minimum": minimum, "maximum": maximum}
    texts = {name: str(value) for name, value in fields.items()}
    return struct_lines("mlf_matmul_int16_dsp", "matmul", texts)


def _parameters(source: Tensor, filter_: Constant, output: Tensor, scratch: int) -> tuple[Parameter, ...]:
    return (
        Parameter("const int16_t *", "input", source.name),
        Parameter("const int32_t *", "filter", filter_),
        Parameter("int16_t *", "output", output.name),
        *([Parameter("int16_t *", "scratch", ScratchBuffer(scratch))] if scratch else []),
    )
