"""CONV_2D on int8 for Helium (MVE)."""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.native.graph import DType, Graph, Node, Tensor
from mlfbuild.native.graph.bases import Window, convolution_tensors
from mlfbuild.native.graph.ops import Conv2D
from mlfbuild.native.lowering.call import KernelCall, Parameter, ScratchBuffer
from mlfbuild.native.lowering.common.mve import (
    MANY_CHANNELS,
    MOST_CHANNELS,
    VECTOR,
    as_one_row,
    is_pointwise,
    matrix_parameters,
    rounding,
    shape_word,
    static_lines,
)
from mlfbuild.native.lowering.common.window import window_lines
from mlfbuild.native.lowering.convolution.conv2d_4x2_mve import has_4x2_kernel

_COPIES = 1024
"""Bytes of windows that are copied at a time, unless a single one is larger."""
_MOST_COPIES = 16
_FIXED = frozenset({("vectors", 4), ("mixed", 1), ("mixed", 2), ("rows", 3)})
"""Kernels for a fixed number of vectors: 64 channels; first layers of three and of one; 3x3 filters of 16."""
_PIXELS = 512
"""Bytes of pixels that a 1x1 filter copies at a time, unless two are larger."""


def lower_conv2d_mve(graph: Graph, node: Node, operator: Conv2D) -> KernelCall | str:
    """Return the call of ``mlf_conv2d_int8_mve`` or its 1x1 form; a reason if there are too many channels."""
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    if output.shape[3] > MOST_CHANNELS:
        return MANY_CHANNELS
    window = operator.window(weights)
    copied = _is_copied(window, source)
    rows, length = _pieces(window, source, weights)
    rescales = operator.rescales(source, weights, output)
    word, way = _word(graph, rows, length), rounding(rescales, operator.activation, output)
    if (word, way) == ("rows", "all"):
        way = "right"  # as exact, and most networks with ReLU have further layers without it
    function = f"mlf_dot_2x4_{word}_{way}"
    parameters = matrix_parameters(source, weights, bias, output, operator.activation, rescales, rows)
    lines = static_lines(window_lines(node, window, *as_one_row(window, source, output)))
    if is_pointwise(window):
        return _pointwise(source, parameters, lines, function)
    batch = _batch(length, output) if copied else 0
    arguments = f"&window, quantization, input, filter, channels, {function}, {batch}"
    if not copied and window.padding == ((0, 0), (0, 0)):
        body = (*lines, f"mlf_conv2d_int8_mve({arguments}, NULL, output);")
        return KernelCall("conv2d", "conv2d_mve.h", parameters, body)
    # A vector more, because the last tail is loaded as a whole vector.
    scratch = ScratchBuffer((batch or 2) * rows * length + VECTOR)
    body = (*lines, f"mlf_conv2d_int8_mve({arguments}, scratch, output);")
    return KernelCall("conv2d", "conv2d_mve.h", (*parameters, Parameter("void *", "scratch", scratch)), body)


def _pieces(window: Window, source: Tensor, weights: Tensor) -> tuple[int, int]:
    """Return the rows that a window consists of in memory, and the bytes of each."""
    rows = 1 if _is_copied(window, source) else window.filter[0]
    return rows, weights.elements // (weights.shape[0] * rows)


def _word(graph: Graph, rows: int, length: int) -> str:
    """Return the shape in the name of the kernel for ``rows`` pieces of ``length`` bytes.

    A kernel for a fixed number of vectors is faster. Except for the long sums of windows of several rows, it is used
    only if it replaces the general one.
    """
    word, vectors = shape_word(length, rows), length // VECTOR
    # Both kernels in one image cost more flash than the faster one is worth.
    same = (each // VECTOR == vectors for each_rows, each in _all_pieces(graph) if shape_word(each, each_rows) == word)
    return f"{word}{vectors}" if (word, vectors) in _FIXED and (word == "rows" or all(same)) else word


def _all_pieces(graph: Graph) -> Iterator[tuple[int, int]]:
    """Yield what ``_pieces`` returns for each int8 convolution of ``graph``."""
    for node in graph.nodes:
        if isinstance(node.operator, Conv2D):
            source, weights = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))[:2]
            if weights.dtype is DType.INT8 and not has_4x2_kernel(graph, node):
                yield _pieces(node.operator.window(weights), source, weights)


def _pointwise(source: Tensor, parameters: tuple[Parameter, ...], lines: tuple[str, ...], function: str) -> KernelCall:
    """Return a call that may overwrite its input, because it copies an even number of pixels before it writes them."""
    depth = source.shape[3]
    pixels = source.elements // depth
    batch = min(max(2, _PIXELS // depth // 2 * 2), pixels + pixels % 2)
    scratch = Parameter("int8_t *", "scratch", ScratchBuffer(min(batch, pixels) * depth))
    arguments = f"&window, quantization, input, filter, channels, {function}, {batch}, scratch, output"
    body = (*lines, f"mlf_conv2d_pointwise_int8_mve({arguments});")
    return KernelCall("conv2d", "conv2d_mve.h", (*parameters, scratch), body, (0,))


def _is_copied(window: Window, source: Tensor) -> bool:
    """Return whether every window is copied, because its rows are not contiguous or too short for vectors."""
    if window.filter == (1, 1):
        return window.padding != ((0, 0), (0, 0)) and source.shape[3] < VECTOR
    dilated = window.filter[1] > 1 and window.dilation[1] > 1
    return dilated or window.filter[1] * source.shape[3] < VECTOR


def _batch(size: int, output: Tensor) -> int:
    """Return how many windows of ``size`` bytes are copied at a time: an even number."""
    fitting = min(_MOST_COPIES, _COPIES // size, output.shape[2] + 1)
    return max(2, fitting // 2 * 2)
