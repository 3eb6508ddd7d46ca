"""CONV_2D on int8 for Helium (MVE)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

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
_FIXED = frozenset({
    ("vectors", 1), ("vectors", 2), ("vectors", 4), ("mixed", 1), ("mixed", 2), ("rows", 3), ("rows", 6), ("rows", 12)
})  # fmt: skip
"""Kernels for a fixed number of vectors: 16 to 64 channels; first layers of three and of one; 3x3 filters of these."""
_WITHOUT_ALL = ("rows", "rows6", "rows12", "near3")
_LINES = ("mixed1", "mixed2", "vectors1", "vectors2", "vectors4", "rows3", "rows6", "rows12", "near3")
"""The kernels of ``dot_2x4_fixed_mve.h``, whose rounding ``right`` does not include shifts by 0."""
_PIXELS, _MOST_PIXELS = 1024, 2048
"""Bytes of pixels that a 1x1 filter copies at a time, unless two are larger; more only if the arena stays as it is."""


def lower_conv2d_mve(layer: Weighted[Conv2D]) -> KernelCall | str:
    """Return the call of ``mlf_conv2d_int8_mve`` or its 1x1 form; a reason if there are too many channels."""
    if layer.output.shape[3] > MOST_CHANNELS:
        return MANY_CHANNELS
    copied, (rows, length) = _is_copied(layer), _pieces(layer)
    word = _word(layer, rows, length)
    function = _function(layer, word)
    parameters = matrix_parameters(layer, rows)
    lines = static_lines(window_lines(layer.node, layer.window, *as_one_row(layer)))
    if layer.is_pointwise:
        return _pointwise(layer, parameters, lines, function)
    arguments = "&window, quantization, input, filter, channels, {}"
    near = word == "rows3" and layer.window.stride[1] * layer.source.shape[3] == VECTOR
    # Pairs of neighbours share vectors; there is no single pixel at the end of a row then.
    beside = _function(layer, "near3") if near and layer.output.shape[2] % 2 == 0 else function
    strip = f"mlf_conv2d_strip_int8_mve({arguments.format(beside)}, {int(word in _LINES)}"
    if not copied and not layer.is_padded:
        pitch = layer.window.dilation[0] * layer.source.shape[2] * layer.source.shape[3]
        return KernelCall("conv2d", "conv2d_mve.h", parameters, (*lines, f"{strip}, 0, {pitch}, NULL, output);"))
    batch = _batch(length, layer.output.shape[2]) if copied else 0
    # A vector more, because the last tail is loaded as a whole vector.
    memory = scratch("int8_t", (batch or 2) * rows * length + VECTOR)
    body = (*lines, f"mlf_conv2d_int8_mve({arguments.format(function)}, {batch}, scratch, output);")
    call = KernelCall("conv2d", "conv2d_mve.h", (*parameters, memory), body)
    if copied or not _has_strip(layer):
        return call
    return _with_strip(layer, call, lambda rows, pitch: (*lines, f"{strip}, {rows}, {pitch}, scratch, output);"))


def _function(layer: Weighted[Conv2D], word: str) -> str:
    """Return the name of the kernel for the shape ``word`` and the rounding of the layer."""
    way = rounding(layer)
    if word in _LINES and way == "right" and any(rescale.shift == 0 for rescale in layer.rescales):
        way = "any"
    if word in _WITHOUT_ALL and way == "all":
        way = "right"  # as exact, and most networks with ReLU have further layers without it
    return f"mlf_dot_2x4_{word}_{way}"


def _has_strip(layer: Weighted[Conv2D]) -> bool:
    """Return whether windows can be read in a strip of the image, without gaps and one row after the other."""
    window = layer.window
    return layer.source.shape[0] == 1 and window.dilation == (1, 1) and window.stride[0] <= window.filter[0]


def _with_strip(layer: Weighted[Conv2D], call: KernelCall, body: Callable[[int, int], tuple[str, ...]]) -> KernelCall:
    """Return ``call`` with a strip instead of copied windows if there is memory for it, now or after planning."""
    window, (source, output) = layer.window, layer.images
    columns = max((output.shape[2] - 1) * window.stride[1] + window.filter[1], window.padding[1][0] + source.shape[2])
    pitch = columns * source.shape[3]

    def with_room(free: int) -> tuple[int, tuple[str, ...]]:
        more = (free // pitch - window.filter[0]) // window.stride[0]
        if more < 0:
            return call.scratch, call.body
        rows = window.filter[0] + min(more, output.shape[1] - 1) * window.stride[0]
        return rows * pitch, body(rows, pitch)

    overwrites = (0,) if _writes_behind(layer) else ()
    room = spare_memory(layer.graph, layer.node)
    if overwrites and _is_replaced(layer):
        room += min(source.size, output.size)
    # Two rows of the output at a time, because rows are moved from one strip to the next.
    size, body_ = with_room(min(room, (window.filter[0] + window.stride[0]) * pitch))
    # In a line buffer, whose rows have their padding above and below, memory is known only after planning.
    if window.padding[0] == (0, 0) or room < window.filter[0] * pitch:
        return replace(call, grown=with_room)
    *parameters, _ = call.parameters
    return replace(
        call, parameters=(*parameters, scratch("int8_t", size)), body=body_, overwrites=overwrites, grown=with_room
    )


def _is_replaced(layer: Weighted[Conv2D]) -> bool:
    """Return whether input and output are in the arena and no other node reads the input."""
    graph, name = layer.graph, layer.source.name
    outside = {*graph.sources, *graph.results}
    readers = [node for node in graph.nodes if name in node.inputs]
    return readers == [layer.node] and outside.isdisjoint((name, layer.output.name))


def _writes_behind(layer: Weighted[Conv2D]) -> bool:
    """Return whether each row of the output ends before the rows of the input that are not in the strip yet."""
    window, (source, output) = layer.window, layer.images
    read, written = (image.size // image.shape[1] for image in (source, output))
    rows = ((y * window.stride[0] - window.padding[0][0] + window.filter[0], y + 1) for y in range(output.shape[1]))
    return all(copied >= source.shape[1] or copied * read >= done * written for copied, done in rows)


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
    # Only the kernel for twelve vectors has a loop over rows.
    if (word, vectors) in {("rows", 3), ("rows", 6)} and rows != 3:
        return word
    # Kernels for a fixed and for any number in one image cost more flash than the faster one is worth.
    same = ((word, each // VECTOR) in _FIXED for rows, each in _all_pieces(layer) if shape_word(each, rows) == word)
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
