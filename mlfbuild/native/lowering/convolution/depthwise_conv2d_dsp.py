"""int8 DEPTHWISE_CONV_2D for cores with the DSP extension: filters of 3x3, larger ones, and those of one weight."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Array, Tensor
from mlfbuild.native.graph.ops import DepthwiseConv2D
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.depthwise import TAPS, depthwise_lines, is_dense, padded_filters
from mlfbuild.native.lowering.common.dsp import DspChannels, brief_channels, dsp_channels, spare_memory
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.parameters import packed_filter, reads, scratch, writes
from mlfbuild.native.lowering.common.window import static_struct_lines
from mlfbuild.native.lowering.trained import trained

_GROUP = 4
_LINE = 64
"""Halfwords of a line of a plane: ``MLF_LINE_DSP``."""

_LARGE_TAPS = (5, 7)
"""Taps of a row of a larger filter, filled up with zeros."""
_MOST_TAPS = 128
"""The most taps of a larger filter, so that 256 times a sum fits in 32 bits."""
_SCALE_WORDS = 5
"""Words of ``struct mlf_large_scale_dsp``."""
_READ_BEHIND = 8
"""Halfwords behind the last plane that the kernel reads."""

_SCALE_HEADER = "depthwise_scale_dsp.h"

_SCRATCH = 4 * 3 * _LINE * 2 + 4 * 76
"""Bytes of ``struct mlf_depthwise_scratch_dsp``."""


def lower_depthwise_conv2d_dsp(layer: Weighted[DepthwiseConv2D]) -> KernelCall | str:
    """Return the call of ``mlf_depthwise_conv2d_int8_dsp``, or the reason why the portable kernel must do it.

    The portable kernel is used for dilated filters, those of two or three weights, larger ones without three to seven
    along a dimension, for fewer than four channels, for a depth multiplier other than 1, and if the kernel's short
    requantisation is not exact. A filter of one weight calls ``mlf_depthwise_scale_int8_dsp``, and one larger than 3x3
    ``mlf_depthwise_large_int8_dsp``.
    """
    operator, source, output, point = layer.operator, layer.source, layer.output, zero_point(layer.output)
    if layer.weights.shape[1:3] == (1, 1):
        return _lower_scale(layer)
    # One of the strides must be possible along a line.
    if not is_dense(layer) or source.shape[3] < _GROUP or min(operator.stride) > 2:
        return "is for filters that are not dilated and at least four channels, without a depth multiplier"
    if max(layer.window.filter) > TAPS:
        return _lower_large(layer)
    # Row by row, a smaller output can take the place of the input, if a separate one would raise the peak.
    by_rows = _shrinks(operator, source, output) and spare_memory(layer.graph, layer.node) < output.size
    # Otherwise lines run along the dimension in which they are longest.
    along = 2 if by_rows else _along(operator, output)
    channels = _channels(layer, padded_filters(layer.weights.known, along))
    if channels is None:
        return NOT_EXACT
    word = "rows_int8" if by_rows else "int8"
    # In place, an output row is held until its inputs have been read.
    held = math.prod(output.shape[2:]) if by_rows else 0
    overwrites = (0,) if by_rows else _overwrites(operator, source, output, along)
    return KernelCall("depthwise_conv2d", "depthwise_conv2d_dsp.h", (
        reads("input", source),
        packed_filter(Constant.packed(_pack(channels), "depthwise_conv2d_dsp.h")),
        writes("output", output),
        scratch("struct mlf_depthwise_scratch_dsp", _SCRATCH + held),
    ), (
        *depthwise_lines(layer, "mlf_depthwise_dsp", along, 0 if channels.brief else 2 * point + 1),
        f"mlf_depthwise_conv2d_{word}_dsp(&depthwise, input, filter, output, scratch);",
    ), overwrites)  # fmt: skip


def _channels(layer: Weighted[DepthwiseConv2D], filters: Array) -> DspChannels | None:
    """Return the constants of the channels with int8 ``filters`` [channels, taps]; ``None`` if they are not exact."""
    point = zero_point(layer.output)
    channels = dsp_channels(filters, layer.folded_bias(), layer.rescales, point)
    return None if channels is None else brief_channels(channels, point)


def _lower_large(layer: Weighted[DepthwiseConv2D]) -> KernelCall | str:
    """Return the call of ``mlf_depthwise_large_int8_dsp`` for a filter that is longer than 3 along a dimension."""
    operator, source, output, size = layer.operator, layer.source, layer.output, layer.window.filter
    # A row of one or two weights would be mostly zeros: 10x1 on images of one column takes five times the instructions.
    possible = [
        each for each in (2, 1) if operator.stride[each - 1] <= 2 and TAPS <= size[each - 1] <= max(_LARGE_TAPS)
    ]
    if not possible or math.prod(size) > _MOST_TAPS:
        return f"is for filters of {TAPS} to {max(_LARGE_TAPS)} taps along a line, and at most {_MOST_TAPS} in all"
    along = max(possible, key=lambda each: output.shape[each])
    taps = next(each for each in _LARGE_TAPS if each >= size[along - 1])
    channels = _channels(layer, padded_filters(layer.weights.known, along, (size[2 - along], taps)))
    if channels is None:
        return NOT_EXACT
    fields = _large_fields(layer, along, taps)
    words, halfwords = 4 * fields["filter"], 4 * fields["plane"] + _READ_BEHIND
    in_place = operator.stride == (1, 1) and source.shape == output.shape and source.shape[3] % _GROUP == 0
    literals = f"{operator.stride[along - 1]}, {taps}"
    return KernelCall("depthwise_conv2d", "depthwise_large_dsp.h", (
        reads("input", source),
        packed_filter(Constant.packed(_pack(channels), "depthwise_large_dsp.h")),
        writes("output", output),
        scratch("int32_t", 4 * words + 2 * halfwords),
    ), (
        *depthwise_lines(layer, "mlf_depthwise_dsp", along, 0 if channels.brief else 2 * zero_point(output) + 1),
        *static_struct_lines("mlf_large_dsp", "large", fields),
        f"mlf_depthwise_large_int8_dsp({literals}, &depthwise, &large, input, filter, output, scratch);",
    ), (0,) if in_place else ())  # fmt: skip


def _large_fields(layer: Weighted[DepthwiseConv2D], along: int, taps: int) -> dict[str, int]:
    """Return the fields of ``struct mlf_large_dsp``, with as many lines in the planes as do not enlarge the arena."""
    across, operator = 3 - along, layer.operator
    outputs, stride, rows = layer.output.shape[across], operator.stride[across - 1], layer.window.filter[across - 1]
    pitch = (layer.output.shape[along] - 1) * operator.stride[along - 1] + taps
    pitch += pitch % 2
    filter_ = _SCALE_WORDS + rows * (taps - 1)
    free = spare_memory(layer.graph, layer.node)

    def plane(lines: int) -> int:
        return ((lines - 1) * stride + rows) * pitch

    fitting = (n for n in (outputs, 8, 4, 2) if n <= outputs and 16 * filter_ + 8 * plane(n) + 2 * _READ_BEHIND <= free)
    lines = next(fitting, 1)
    return {"rows": rows, "taps": taps, "lines": lines, "pitch": pitch, "plane": plane(lines), "filter": filter_}


def _lower_scale(layer: Weighted[DepthwiseConv2D]) -> KernelCall | str:
    """Return the call for a filter of one weight per channel, as of a BatchNormalization."""
    source, output = layer.source, layer.output
    # One weight per pixel: without padding or stride, input and output have the same shape.
    if layer.operator.depth_multiplier != 1 or source.shape != output.shape:
        return "a filter of one weight must keep the shape"
    column = layer.weights.known.reshape(-1, 1)
    channels = dsp_channels(column, layer.folded_bias(), layer.rescales, zero_point(output))
    if channels is None:
        return NOT_EXACT
    # The requantisation of `dsp.h` starts from twice the sum.
    twice = 2 * channels.weights[:, 0].astype(np.int64)
    packed = np.stack([channels.bias, twice, channels.multiplier, channels.shift], 1).astype(np.int32).reshape(-1)
    minimum, maximum = layer.bounds
    fields = {
        "pixels": layer.rows,
        "channels": source.shape[3],
        "rounding": trained(2 * zero_point(output) + 1),
        "minimum": minimum,
        "maximum": maximum,
    }
    return KernelCall("depthwise_conv2d", _SCALE_HEADER, (
        reads("input", source),
        packed_filter(Constant.packed(packed, _SCALE_HEADER)),
        writes("output", output),
    ), (
        *static_struct_lines("mlf_scale_dsp", "scale", fields),
        "mlf_depthwise_scale_int8_dsp(&scale, input, filter, output);",
    ), (0,))  # fmt: skip


def _shrinks(operator: DepthwiseConv2D, source: Tensor, output: Tensor) -> bool:
    """Return whether an output row, written in place, is one piece and ends before the inputs of the next row begin."""
    padding, width = operator.padding[0][0], output.shape[2]
    # One line in one piece: a line in two pieces would read inputs that were overwritten.
    smaller = output.shape[1] <= source.shape[1] and width <= source.shape[2]
    # An output row is written after the inputs that it needs were read, and ends before those of the next row.
    apart = (operator.stride[0] - padding) * source.shape[2] >= width
    return smaller and apart and operator.stride[1] <= 2 and _line(operator, output, 2) <= _LINE


def _along(operator: DepthwiseConv2D, output: Tensor) -> int:
    """Return the dimension of the images, 1 or 2, that the kernel's lines run along.

    Long lines cost least, but only a line in one piece can be written in place.
    """
    possible = [dimension for dimension in (2, 1) if operator.stride[dimension - 1] <= 2]
    return max(possible, key=lambda each: (_line(operator, output, each) <= _LINE, output.shape[each]))


def _line(operator: DepthwiseConv2D, output: Tensor, dimension: int) -> int:
    """Return the halfwords of a whole line of a plane along ``dimension``."""
    return (output.shape[dimension] - 1) * operator.stride[dimension - 1] + TAPS


def _overwrites(operator: DepthwiseConv2D, source: Tensor, output: Tensor, along: int) -> tuple[int, ...]:
    """Return the positions of inputs that the output may overwrite.

    If both images have the same size, a line of a channel is read before its address is written.
    """
    whole = _line(operator, output, along) <= _LINE and source.shape[3] % _GROUP == 0
    return (0,) if whole and operator.stride == (1, 1) and source.shape == output.shape else ()


def _pack(channels: DspChannels) -> npt.NDArray[np.int32]:
    """Return the filter in groups of four channels; the last group holds the last four channels."""
    count = len(channels.weights)
    # The last group overlaps the one before, so that the kernel has no case for fewer channels.
    firsts = [*range(0, count - _GROUP + 1, _GROUP), *([count - _GROUP] if count % _GROUP else [])]
    groups = np.array(firsts)[:, None] + np.arange(_GROUP)
    shifts = _words(channels.shift[groups][:, None, :])
    taps = _words(channels.weights[groups].transpose(0, 2, 1))
    packed = np.concatenate([channels.bias[groups], channels.multiplier[groups], shifts, taps], axis=1)
    return packed.astype(np.int32).reshape(-1)


def _words(values: Array) -> npt.NDArray[np.int64]:
    """Return int8 ``values`` [groups, words, 4] as words [groups, words], the first in the lowest byte."""
    return np.ascontiguousarray(values.astype(np.int8)).view("<i4")[:, :, 0].astype(np.int64)
