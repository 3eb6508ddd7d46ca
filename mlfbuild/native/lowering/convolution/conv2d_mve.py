"""CONV_2D on int8 for Helium (MVE)."""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.native.graph import DType
from mlfbuild.native.graph.ops import Conv2D
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.lowering.common.dsp import spare_memory
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.mve import (
    MANY_CHANNELS,
    MOST_CHANNELS,
    VECTOR,
    as_one_row,
    matrix_parameters,
    rounding,
    shape_word,
)
from mlfbuild.native.lowering.common.parameters import scratch
from mlfbuild.native.lowering.common.window import static_lines, window_lines
from mlfbuild.native.lowering.convolution.conv2d_4x2_mve import has_4x2_kernel

_COPIES = 1024
"""Bytes of windows that are copied at a time, unless a single one is larger."""
_MOST_COPIES = 16
_FIXED = frozenset({("vectors", 4), ("mixed", 1), ("mixed", 2), ("rows", 3), ("rows", 6), ("rows", 12)})
"""Kernels for a fixed number of vectors: 64 channels; first layers of three and of one; 3x3 filters of 16, 32, 64."""
_WITHOUT_ALL = ("rows", "rows6", "rows12")
_PIXELS, _MOST_PIXELS = 1024, 2048
"""Bytes of pixels that a 1x1 filter copies at a time, unless two are larger; more only if the arena stays as it is."""


def lower_conv2d_mve(layer: Weighted[Conv2D]) -> KernelCall | str:
    """Return the call of ``mlf_conv2d_int8_mve`` or its 1x1 form; a reason if there are too many channels."""
    if layer.output.shape[3] > MOST_CHANNELS:
        return MANY_CHANNELS
    copied, (rows, length) = _is_copied(layer), _pieces(layer)
    word, way = _word(layer, rows, length), rounding(layer)
    if word in _WITHOUT_ALL and way == "all":
        way = "right"  # as exact, and most networks with ReLU have further layers without it
    function = f"mlf_dot_2x4_{word}_{way}"
    parameters = matrix_parameters(layer, rows)
    lines = static_lines(window_lines(layer.node, layer.window, *as_one_row(layer)))
    if layer.is_pointwise:
        return _pointwise(layer, parameters, lines, function)
    batch = _batch(length, layer.output.shape[2]) if copied else 0
    # A vector more, because the last tail is loaded as a whole vector.
    more = [scratch("void", (batch or 2) * rows * length + VECTOR)] if copied or layer.is_padded else []
    arguments = f"&window, quantization, input, filter, channels, {function}, {batch}, {'scratch' if more else 'NULL'}"
    body = (*lines, f"mlf_conv2d_int8_mve({arguments}, output);")
    return KernelCall("conv2d", "conv2d_mve.h", (*parameters, *more), body)


def _pieces(layer: Weighted[Conv2D]) -> tuple[int, int]:
    """Return the rows that a window consists of in memory, and the bytes of each."""
    rows = 1 if _is_copied(layer) else layer.window.filter[0]
    return rows, layer.inputs // rows


def _word(layer: Weighted[Conv2D], rows: int, length: int) -> str:
    """Return the shape in the name of the kernel for ``rows`` pieces of ``length`` bytes.

    A kernel for a fixed number of vectors is faster. Except for the long sums of windows of several rows, it is used
    only if it replaces the general one.
    """
    word, vectors = shape_word(length, rows), length // VECTOR
    # The kernel for three vectors has no loop over rows.
    if (word, vectors) == ("rows", 3) and rows != 3:
        return word
    # Both kernels in one image cost more flash than the faster one is worth.
    same = (each // VECTOR == vectors for each_rows, each in _all_pieces(layer) if shape_word(each, each_rows) == word)
    return f"{word}{vectors}" if (word, vectors) in _FIXED and (word == "rows" or all(same)) else word


def _all_pieces(layer: Weighted[Conv2D]) -> Iterator[tuple[int, int]]:
    """Yield what ``_pieces`` returns for each int8 convolution of the graph."""
    for node in layer.graph.nodes:
        if isinstance(node.operator, Conv2D):
            other = Weighted(layer.graph, node, node.operator, layer.replaceable)
            if other.weights.dtype is DType.INT8 and not has_4x2_kernel(other):
                yield _pieces(other)


def _pointwise(
    layer: Weighted[Conv2D], parameters: tuple[Parameter, ...], lines: tuple[str, ...], function: str
) -> KernelCall:
    """Return a call that may overwrite its input, because it copies an even number of pixels before it writes them."""
    depth = layer.source.shape[3]
    room = min(max(_PIXELS, spare_memory(layer.graph, layer.node, strided=True)), _MOST_PIXELS)
    batch = min(max(2, room // depth // 2 * 2), layer.rows + layer.rows % 2)
    memory = scratch("int8_t", min(batch, layer.rows) * depth)
    arguments = f"&window, quantization, input, filter, channels, {function}, {batch}, scratch, output"
    body = (*lines, f"mlf_conv2d_pointwise_int8_mve({arguments});")
    return KernelCall("conv2d", "conv2d_mve.h", (*parameters, memory), body, (0,))


def _is_copied(layer: Weighted[Conv2D]) -> bool:
    """Return whether every window is copied, because its rows are not contiguous or too short for vectors."""
    window, depth = layer.window, layer.source.shape[3]
    if window.filter == (1, 1):
        return layer.is_padded and depth < VECTOR
    dilated = window.filter[1] > 1 and window.dilation[1] > 1
    return dilated or window.filter[1] * depth < VECTOR


def _batch(size: int, columns: int) -> int:
    """Return how many windows of ``size`` bytes are copied at a time for a row of ``columns``: an even number."""
    fitting = min(_MOST_COPIES, _COPIES // size, columns + 1)
    return max(2, fitting // 2 * 2)
