"""CONV_2D on int8 with windows of at most 32 bytes for Helium (MVE): ``dot_4x2_mve.h``."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph import Graph, Node, Tensor, activation_range
from mlfbuild.native.graph.bases import Window, convolution_tensors
from mlfbuild.native.graph.ops import Conv2D
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall, Parameter, ScratchBuffer, folded_bias
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.dsp import DspChannels, spare_memory
from mlfbuild.native.lowering.common.mve import (
    VECTOR,
    as_one_row,
    brief_table,
    is_pointwise,
    rounded_once,
    static_lines,
)
from mlfbuild.native.lowering.common.window import window_lines

_HEADER = "dot_4x2_mve.h"
_LARGEST = 2 * VECTOR
_GROUP = 4
"""Pixels that a kernel computes together."""
_POINTWISE = (8, 16, 32)
_DISTANCES = {1: (3, 6), 2: (9, 18)}
"""The distances of windows of one and two vectors for which there are kernels."""
_LEAST_PIXELS = 1024
_MOST_PIXELS = 4096
"""Bytes of pixels that a 1x1 filter copies at a time: more than the least only if this does not enlarge the arena."""
_OFFSETS = 1 << 16


def has_4x2_kernel(graph: Graph, node: Node) -> bool:
    """Return whether there is a kernel for the convolution ``node``; whether it is exact depends on the weights."""
    operator = node.operator
    assert isinstance(operator, Conv2D)
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    window, length = operator.window(weights), _length(weights)
    # A clamp is not part of the kernel: results saturate to int8 only.
    if length > _LARGEST or activation_range(operator.activation, output) != (-128, 127):
        return False
    # Offsets of outputs have 16 bits, for four pixels.
    if not 2 <= output.shape[3] < _OFFSETS // _GROUP:
        return False
    if is_pointwise(window):
        # Contiguous pixels: any four of them are a group.
        return output.elements // output.shape[3] >= _GROUP
    distance = _distance(window, source, length)
    # Columns of a window must be adjacent in the copy, and rows shorter than a vector.
    usable = max(window.dilation) == 1 and window.filter[1] > 1 and source.shape[3] < VECTOR
    return usable and distance in _DISTANCES[_vectors(length)] and output.shape[2] >= _GROUP


def lower_conv2d_4x2_mve(graph: Graph, node: Node, operator: Conv2D) -> KernelCall | str:
    """Return the call for small windows; a reason if the kernels do not support the node, or not exactly."""
    if not has_4x2_kernel(graph, node):
        return f"is for windows of at most {_LARGEST} contiguous bytes, several channels and no activation"
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    window, length = operator.window(weights), _length(weights)
    distance = _distance(window, source, length)
    folded = folded_bias(None if bias is None else bias.data, weights.known, 0, zero_point(source))
    # Columns first: rows of the image are interleaved, so that the columns of a window are adjacent.
    ordered = weights.known.transpose(0, 2, 1, 3).reshape(len(folded), -1)
    found = rounded_once(ordered, folded, operator.rescales(source, weights, output), operator.activation, output)
    if found is None:
        return NOT_EXACT
    channels, scale = found
    lines = static_lines(window_lines(node, window, *as_one_row(window, source, output)))
    function = f"mlf_dot_4x2_vectors{_vectors(length)}_{distance}"
    tables = f"input, filter, channels, {scale}, {function}"
    if is_pointwise(window):
        batch = _batch(graph, node, output.elements // output.shape[3], distance)
        size = batch * distance + _LARGEST
        call = f"mlf_pointwise_4x2_int8_mve(&window, {tables}, {distance}, {batch}, scratch, output);"
    else:
        size = _size(window, source, output)
        call = f"mlf_conv2d_4x2_int8_mve(&window, {zero_point(source)}, {tables}, {size}, scratch, output);"
    return KernelCall("conv2d", _HEADER, (
        Parameter("const int8_t *", "input", source.name),
        *_tables(channels),
        Parameter("int8_t *", "scratch", ScratchBuffer(size)),
        # A pointwise filter reads a pixel before it writes it; others read rows again.
        Parameter("int8_t *", "output", output.name),
    ), (*lines, call), (0,) if is_pointwise(window) else ())  # fmt: skip


def _length(weights: Tensor) -> int:
    """Return the bytes of a window."""
    return weights.elements // weights.shape[0]


def _vectors(length: int) -> int:
    return -(-length // VECTOR)


def _distance(window: Window, source: Tensor, length: int) -> int:
    """Return the bytes from a window to the next."""
    if is_pointwise(window):
        # Pixels are padded to a power of two, for which there are kernels.
        return next(each for each in _POINTWISE if each >= length)
    return window.stride[1] * window.filter[0] * source.shape[3]


def _tables(channels: DspChannels) -> tuple[Parameter, Parameter]:
    """Return weights and rescalings; an odd number of channels ends with the pair of the last two."""
    count, length = channels.weights.shape
    order = [*range(count)] if count % 2 == 0 else [*range(count - 1), count - 2, count - 1]
    padded = np.pad(channels.weights, ((0, 0), (0, -length % VECTOR)))[order].reshape(-1)
    return (
        Parameter("const int8_t *", "filter", Constant.array("filter", "int8_t", padded, order=_HEADER)),
        Parameter("const struct mlf_brief *", "channels", brief_table(channels, order)),
    )


def _batch(graph: Graph, node: Node, pixels: int, distance: int) -> int:
    """Return how many pixels are copied at a time: whole groups, and more than one unless all pixels are one."""
    room = min(max(_LEAST_PIXELS, spare_memory(graph, node, strided=True) - _LARGEST), _MOST_PIXELS)
    # Rounded up to whole groups, for which the scratch memory is large enough.
    return min(room // distance // _GROUP * _GROUP, -(-pixels // _GROUP) * _GROUP)


def _size(window: Window, source: Tensor, output: Tensor) -> int:
    """Return the bytes of scratch memory for the rows under the filter."""
    height, width = ((count - 1) * step + taps for count, step, taps in zip(
        output.shape[1:3], window.stride, window.filter, strict=True
    ))  # fmt: skip
    columns = max(width, window.padding[1][0] + source.shape[2])
    # Two more vectors, because the last window is loaded as whole vectors.
    return (columns * window.filter[0] + height) * source.shape[3] + _LARGEST
