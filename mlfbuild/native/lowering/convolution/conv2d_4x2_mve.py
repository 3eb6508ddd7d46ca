"""CONV_2D on int8 with windows of at most 32 bytes for Helium (MVE): ``dot_4x2_mve.h``."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.ops import Conv2D
from mlfbuild.native.lowering.call import NOT_EXACT, KernelCall, Parameter
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.dsp import DspChannels, spare_memory
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.mve import VECTOR, as_one_row, brief_table, rounded_once
from mlfbuild.native.lowering.common.parameters import array, constant, reads, scratch, writes
from mlfbuild.native.lowering.common.window import static_lines, window_lines

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


def has_4x2_kernel(layer: Weighted[Conv2D]) -> bool:
    """Return whether there is a kernel for the convolution; whether it is exact depends on the weights."""
    window, output = layer.window, layer.output
    if layer.replaceable:
        return False
    # A clamp is not part of the kernel: results saturate to int8 only.
    if layer.inputs > _LARGEST or layer.clamp != (-128, 127):
        return False
    # Offsets of outputs have 16 bits, for four pixels.
    if not 2 <= output.shape[3] < _OFFSETS // _GROUP:
        return False
    if layer.is_pointwise:
        # Contiguous pixels: any four of them are a group.
        return layer.rows >= _GROUP
    # Columns of a window must be adjacent in the copy, and rows shorter than a vector.
    usable = max(window.dilation) == 1 and window.filter[1] > 1 and layer.source.shape[3] < VECTOR
    return usable and _distance(layer) in _DISTANCES[_vectors(layer.inputs)] and output.shape[2] >= _GROUP


def lower_conv2d_4x2_mve(layer: Weighted[Conv2D]) -> KernelCall | str:
    """Return the call for small windows; a reason if the kernels do not support the node, or not exactly."""
    if not has_4x2_kernel(layer):
        return f"is for windows of at most {_LARGEST} contiguous bytes, several channels and no activation"
    # Columns first: rows of the image are interleaved, so that the columns of a window are adjacent.
    ordered = layer.weights.known.transpose(0, 2, 1, 3).reshape(layer.output.shape[3], -1)
    found = rounded_once(layer, ordered)
    if found is None:
        return NOT_EXACT
    channels, scale = found
    distance = _distance(layer)
    lines = static_lines(window_lines(layer.node, layer.window, *as_one_row(layer)))
    tables = f"input, filter, channels, {scale}, mlf_dot_4x2_vectors{_vectors(layer.inputs)}_{distance}"
    if layer.is_pointwise:
        batch = _batch(layer, distance)
        size = batch * distance + _LARGEST
        call = f"mlf_pointwise_4x2_int8_mve(&window, {tables}, {distance}, {batch}, scratch, output);"
    else:
        size = _size(layer)
        call = f"mlf_conv2d_4x2_int8_mve(&window, {zero_point(layer.source)}, {tables}, {size}, scratch, output);"
    return KernelCall("conv2d", _HEADER, (
        reads("input", layer.source),
        *_tables(channels),
        scratch("int8_t", size),
        # A pointwise filter reads a pixel before it writes it; others read rows again.
        writes("output", layer.output),
    ), (*lines, call), (0,) if layer.is_pointwise else ())  # fmt: skip


def _vectors(length: int) -> int:
    return -(-length // VECTOR)


def _distance(layer: Weighted[Conv2D]) -> int:
    """Return the bytes from a window to the next."""
    if layer.is_pointwise:
        # Pixels are padded to a power of two, for which there are kernels.
        return next(each for each in _POINTWISE if each >= layer.inputs)
    return layer.window.stride[1] * layer.window.filter[0] * layer.source.shape[3]


def _tables(channels: DspChannels) -> tuple[Parameter, Parameter]:
    """Return weights and rescalings; an odd number of channels ends with the pair of the last two."""
    count, length = channels.weights.shape
    order = [*range(count)] if count % 2 == 0 else [*range(count - 1), count - 2, count - 1]
    padded = np.pad(channels.weights, ((0, 0), (0, -length % VECTOR)))[order].reshape(-1)
    return array("filter", "int8_t", padded, order=_HEADER), constant(brief_table(channels, order))


def _batch(layer: Weighted[Conv2D], distance: int) -> int:
    """Return how many pixels are copied at a time: whole groups, and more than one unless all pixels are one."""
    room = min(max(_LEAST_PIXELS, spare_memory(layer.graph, layer.node, strided=True) - _LARGEST), _MOST_PIXELS)
    # Rounded up to whole groups, for which the scratch memory is large enough.
    return min(room // distance // _GROUP * _GROUP, -(-layer.rows // _GROUP) * _GROUP)


def _size(layer: Weighted[Conv2D]) -> int:
    """Return the bytes of scratch memory for the rows under the filter."""
    window, depth = layer.window, layer.source.shape[3]
    height, width = ((count - 1) * step + taps for count, step, taps in zip(
        layer.output.shape[1:3], window.stride, window.filter, strict=True
    ))  # fmt: skip
    columns = max(width, window.padding[1][0] + layer.source.shape[2])
    # Two more vectors, because the last window is loaded as whole vectors.
    return (columns * window.filter[0] + height) * depth + _LARGEST
