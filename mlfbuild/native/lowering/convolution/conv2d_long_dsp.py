"""int8 CONV_2D with a filter of 3x3 for cores with the DSP extension, by products of numbers with two digits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from mlfbuild.native.graph import Array
from mlfbuild.native.graph.ops import Conv2D
from mlfbuild.native.lowering.call import Constant, KernelCall
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.dsp import DspChannels, is_of_few_rows
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.convolution.conv2d_dsp import (
    READ_AGAIN,
    block_size,
    conv2d_lines,
    copied_field,
    copied_pairs,
    dsp_parameters,
    general_channels,
    is_brief,
    lower_conv2d_dsp,
    matmul_fields,
    padding_pixel,
    row_size,
    with_copy,
)
from mlfbuild.native.lowering.trained import trained

# Sums of 64 bits have three digits; the two lower ones are equal, and 20 bits are left for the highest.
_DIGIT = 22
"""The bits of each of a sum's two lower digits."""
_HIGHEST = 64 - 2 * _DIGIT
_OUTPUTS = 6
"""The block size."""
_INPUTS = 12
"""Inputs whose weights are together in the filter; a window has a multiple of it, three for each input channel."""
_LEAST_CHANNELS = 8
"""Fewer input channels take less time in blocks of three, which have less to do for each output channel."""
_REASON = "its sums are not exact with these weights, or need more memory than those of conv2d_dsp"
_LEAST_PIXELS = 256
"""The least pixels of an image, unless it is computed a few rows at a time: filters need two thirds more flash."""


def lower_conv2d_long_dsp(layer: Weighted[Conv2D]) -> KernelCall | str:
    """Return the call of ``mlf_conv2d_long_int8_dsp``; a reason if it would be slower, too large or not exact."""
    operator, source, output = layer.operator, layer.source, layer.output
    depth, outputs = source.shape[3], output.shape[3]
    if (
        layer.weights.shape[1:3] != (3, 3)
        or operator.stride != (1, 1)
        or operator.dilation != (1, 1)
        or operator.padding[1] != (1, 1)
        or source.shape[0] != 1
        or depth % 4 != 0
        or depth < _LEAST_CHANNELS
        or output.shape[2] < _OUTPUTS
        or not (is_of_few_rows(layer.graph) or layer.rows >= _LEAST_PIXELS)
    ):
        return f"is for filters of 3x3 and whole words of at least {_LEAST_CHANNELS} channels in large images"
    row = row_size(layer.inputs)
    # Four words with two pixels each, for the three rows of the filter, and one carry for each output channel.
    scratch = 16 * 3 * depth + 4 * outputs
    if layer.replaceable:
        return _lower_either(layer, scratch) if scratch <= row * block_size(layer, row) else _REASON
    channels = general_channels(layer)
    # It must not need more scratch memory than the kernel that it replaces.
    if channels is None or scratch > row * block_size(layer, row) or not _fits(channels, depth):
        return _REASON

    # The packed words are made again when they are printed, so that they need no memory until then.
    def again() -> Array | None:
        repeated = general_channels(layer)
        return None if repeated is None else _pack(repeated, depth, zero_point(output))

    filter_ = Constant.packed(_pack(channels, depth, zero_point(output)), "conv2d_long_dsp.h", again)
    matmul = matmul_fields(layer, brief=False)
    words = filter_.size // 4 // outputs
    together = 1 + words % 2  # channels that are copied together: an even number of words

    def body(copied: int) -> tuple[str, ...]:
        statement = "mlf_conv2d_long_int8_dsp(&conv2d, input, filter, padding, output, scratch);"
        return (*conv2d_lines(layer, matmul | copied_field(copied * together)), statement)

    parameters = (*dsp_parameters(layer, filter_, scratch), padding_pixel(layer))
    grown = partial(with_copy, scratch, 4 * words * together, outputs // together, body)
    grown_if_read_again = grown if layer.rows >= READ_AGAIN else None
    blocks = -(-output.shape[1] * (output.shape[2] + 1) // _OUTPUTS)
    header = "conv2d_long_dsp.h"
    return KernelCall("conv2d", header, parameters, body(0), grown=grown_if_read_again, blocks=blocks)


def _lower_either(layer: Weighted[Conv2D], scratch: int) -> KernelCall | str:
    """Return a call of this kernel or of ``mlf_conv2d_int8_dsp``, as a value of the blob says; or a reason.

    Whether sums fit depends on the weights, and firmware must be able to use others. The filters of both kernels take
    the same place.
    """
    usual, channels, depth = lower_conv2d_dsp(layer), general_channels(layer), layer.source.shape[3]
    if isinstance(usual, str) or channels is None:
        return _REASON
    fits, words, outputs = _fits(channels, depth), depth // 4 * 15 + 4, layer.output.shape[3]
    filter_ = next(each.argument for each in usual.parameters if each.name == "filter")
    assert isinstance(filter_, Constant)
    room = max(filter_.space, 4 * words * outputs)
    if fits:
        filter_ = Constant.packed(_pack(channels, depth, zero_point(layer.output)), "conv2d_long_dsp.h")
    matmul = matmul_fields(layer, brief=is_brief(usual))
    together = 1 + words % 2
    copying = partial(with_copy, scratch, 4 * words * together, outputs // together, partial(_copies, together))

    def body(copied: str, usual_copied: str) -> tuple[str, ...]:
        # The flag is read once: it selects the kernel and the number of copies for which there is memory.
        copies = {} if copied == usual_copied == "0" else {"copied": f"is_long != 0 ? {copied} : {usual_copied}"}
        return (
            f"const int32_t is_long = {trained(int(fits))};",
            *conv2d_lines(layer, matmul | copies),
            "if (is_long != 0) {",
            "    mlf_conv2d_long_int8_dsp(&conv2d, input, filter, padding, output, scratch);",
            "} else {",
            f"    {usual.body[-1]}",
            "}",
        )

    def grown(free: int) -> tuple[int, tuple[str, ...]]:
        (used, (copied,)), more = copying(free), usual.with_room(free)
        return max(used, more.scratch), body(copied, copied_pairs(more))

    size = max(scratch, usual.scratch)
    parameters = (*dsp_parameters(layer, replace(filter_, room=room), size), padding_pixel(layer))
    again = grown if layer.rows >= READ_AGAIN else None
    more_headers = (usual.header, *usual.more_headers)
    return KernelCall(
        "conv2d", "conv2d_long_dsp.h", parameters, body("0", "0"), more_headers=more_headers, grown=again,
        blocks=usual.blocks,
    )  # fmt: skip


def _copies(together: int, count: int) -> tuple[str, ...]:
    return (str(count * together),)


def _columns(channels: DspChannels, depth: int) -> Array:
    """Return the weights int64 [columns of the filter, output channels, rows of the filter * input channels]."""
    weights: Array = channels.weights.astype(np.int64).reshape(-1, 3, 3, depth).transpose(2, 0, 1, 3)
    return weights.reshape(3, len(channels.weights), -1)


def _fits(channels: DspChannels, depth: int) -> bool:
    """Return whether the digits of all sums fit for any input; the second one has all weights."""
    # Any input is at most 128 in magnitude, so that this bounds every sum.
    sums = 128 * np.abs(_columns(channels, depth)).sum(axis=2)
    # Digits are signed: one bit of each is the sign, which borrows from the next digit.
    return bool(sums.sum(axis=0).max() < 1 << _DIGIT - 1 and sums[1].max() < 1 << _HIGHEST - 1)


def _pack(channels: DspChannels, depth: int, zero_point: int) -> Array:
    """Return the filter of ``kernels/dsp/conv2d_long_dsp.h``."""
    alone, second, first = _columns(channels, depth)
    count = len(first)
    # Two weights in one number: the product has both sums in digits of their own.
    words = (first + (second << _DIGIT)).reshape(count, -1, _INPUTS)
    single = np.ascontiguousarray(alone.reshape(count, -1, _INPUTS).astype("<i1")).view("<i4")
    shift = channels.shift.astype(np.int64)
    # Twice 2**21, which the kernel adds to a digit to separate it from the one above.
    bias = channels.bias - (1 << _DIGIT)
    parameters = np.stack([bias, channels.multiplier, shift, (2 * zero_point + 1) << shift], axis=1)
    packed = np.concatenate([np.concatenate([words, single], axis=2).reshape(count, -1), parameters], axis=1)
    return packed.astype(np.int32).reshape(-1)
