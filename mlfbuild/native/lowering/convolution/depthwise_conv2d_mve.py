"""DEPTHWISE_CONV_2D on int8 for Helium (MVE)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from mlfbuild.native.graph import Array, Tensor
from mlfbuild.native.graph.ops import DepthwiseConv2D
from mlfbuild.native.lowering.call import Constant, KernelCall
from mlfbuild.native.lowering.common.activation import quantization_constant, zero_point
from mlfbuild.native.lowering.common.dsp import spare_memory
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.mve import (
    GROUP,
    VECTOR,
    brief_table,
    channels_in_fours,
    rounded_once_by_channel,
    rounding,
)
from mlfbuild.native.lowering.common.parameters import array, constant, reads, scratch, writes
from mlfbuild.native.lowering.common.window import static_struct_lines

_Axis = Mapping[str, int]

_MOST_CHANNELS = 19
"""The most channels that the ring holds: ``MLF_DEPTHWISE_MOST``."""
_OFFSET_CHANNELS = 24
"""Those channels, rounded up to whole vectors of offsets."""
_OFFSETS = 1 << 16
_PLANE = _OFFSETS // VECTOR - 1
"""The most bytes of a channel of a band."""
_BLOCKS = (16, 8, 4)
"""Channels that may be copied to planes at a time."""
_ROWS = 4
"""Output rows at a time that are enough to make the costs of a call small."""
# A row of the ring has costs of its own, which few outputs do not pay for.
_SHORT = 8
"""If output rows are shorter, the image is processed by columns instead."""


def lower_depthwise_conv2d_mve(layer: Weighted[DepthwiseConv2D]) -> KernelCall | str:
    """Return the call of ``mlf_depthwise_conv2d_int8_mve``; a reason if the kernel does not support the node."""
    source, output = layer.source, layer.output
    if not _fits(layer):
        return "does not support the size of the image, the filter, its steps or the number of channels"
    turned = _is_turned(source, output)
    inner = 1 if turned else 2
    axes = {"inner": _axis(layer, inner), "outer": _axis(layer, 3 - inner)}
    planes = None if layer.replaceable else _lower_planes(layer, axes, turned=turned)
    if planes is not None:
        return planes
    # Offsets of gather loads have 16 bits.
    if _pitch(axes) * _OFFSET_CHANNELS > _OFFSETS or axes["inner"]["output_step"] + GROUP > _OFFSETS:
        return "rows are too long for its 16-bit offsets"
    folded, rescales, rest = layer.folded_bias(), layer.rescales, output.shape[3] % GROUP
    if rest:  # the last group is the last four channels
        folded = np.concatenate([folded[:-rest], folded[-GROUP:]])
        rescales = (*rescales[:-rest], *rescales[-GROUP:])
    taps = layer.weights.known[0].transpose((2, 0, 1) if turned else (2, 1, 0))
    rows = axes["outer"]["filter"]
    step = rows * axes["inner"]["stride"]
    word = f"step{step if step in (3, 6) else ''}_{rounding(layer)}"
    arguments = "&image, quantization, input, filter, channels, order"
    return KernelCall("depthwise_conv2d", "depthwise_conv2d_mve.h", (
        constant(quantization_constant(source, output, layer.operator.activation)),
        reads("input", source),
        array("filter", "int8_t", np.ascontiguousarray(taps)),
        constant(channels_in_fours(folded, rescales)),
        constant(replace(Constant.array("order", "uint8_t", _order(rows, taps[0].size)), fixed=True)),
        scratch("void", _scratch(source, axes)),
        writes("output", output),
    ), (
        *_image_lines(source, axes),
        f"mlf_depthwise_conv2d_int8_mve({arguments}, mlf_depthwise_{word}, scratch, output);",
    ), _overwrites(source, output, turned=turned))  # fmt: skip


def _lower_planes(layer: Weighted[DepthwiseConv2D], axes: Mapping[str, _Axis], *, turned: bool) -> KernelCall | None:
    """Return the call for filters of 3x3 and a stride of 1; ``None`` if it is not exact, or planes are too large."""
    source, output, inner, outer = layer.source, layer.output, axes["inner"], axes["outer"]
    # The kernel is written for 3x3 and stride 1, and computes two rows at a time.
    if any((axis["filter"], axis["stride"]) != (3, 1) or axis["output"] < 2 for axis in (inner, outer)):
        return None
    taps = layer.weights.known[0].transpose((2, 1, 0) if turned else (2, 0, 1)).reshape(source.shape[3], -1)
    channels = rounded_once_by_channel(layer, taps)
    # Scratch memory that does not enlarge the arena, or no more than a ring takes.
    ring = -(-_scratch(source, axes) // VECTOR) * VECTOR
    room = max(spare_memory(layer.graph, layer.node, strided=True), ring)
    shape = _planes(inner, outer, source.shape[3], room)
    if channels is None or shape is None or outer["output_step"] + 3 * inner["output_step"] >= _OFFSETS:
        return None
    pitch, block, band = shape
    arguments = f"&image, {zero_point(source)}, input, filter, channels, {pitch}, {block}, {band}, scratch"
    return KernelCall("depthwise_conv2d", "depthwise_planes_mve.h", (
        reads("input", source),
        array("filter", "int8_t", np.ascontiguousarray(channels.weights)),
        constant(brief_table(channels, range(source.shape[3]))),
        scratch("int8_t", 2 * VECTOR + min(source.shape[3], block) * (band + 2) * pitch),
        writes("output", output),
    ), (
        *_image_lines(source, axes),
        f"mlf_depthwise_planes_int8_mve({arguments}, output);",
    ), _overwrites(source, output, turned=turned))  # fmt: skip


def _planes(inner: _Axis, outer: _Axis, channels: int, room: int) -> tuple[int, int, int] | None:
    """Return the bytes of a plane's row, the channels, and the output rows that are computed at a time.

    Both have to fit in ``room`` bytes. Fewer channels cost more calls, and four as many instructions to copy as eight,
    so that they are chosen only if there are not at least ``_ROWS`` rows of more channels.
    """
    wide = inner["padding"] + max(inner["input"], inner["output"] + 2 - inner["padding"])
    # Gather loads read half words: rows begin at even addresses.
    pitch = wide + wide % 2
    found = None
    for block in _BLOCKS:
        plane = min((room - 2 * VECTOR) // min(block, channels), _PLANE)
        band = _band(outer["output"], plane // pitch - 2)
        if band > 0 and (found is None or found[2] < min(outer["output"], _ROWS)):
            found = pitch, block, band
    return found


def _scratch(source: Tensor, axes: Mapping[str, _Axis]) -> int:
    """Return the bytes of scratch memory with a ring."""
    return 2 * VECTOR + min(source.shape[3], _MOST_CHANNELS) * _pitch(axes) + VECTOR


def _band(rows: int, most: int) -> int:
    """Return how many of ``rows`` to compute at a time, at most ``most``: all or an even number that leaves not 1."""
    if most >= rows:
        return rows
    evens = range(most - most % 2, 1, -2)
    return next((band for band in evens if rows % band != 1), 0)


def _fits(layer: Weighted[DepthwiseConv2D]) -> bool:
    """Return whether the kernel supports filter and image: adjacent taps in a vector, four channels, two outputs."""
    window = layer.window
    return (
        layer.operator.depth_multiplier == 1
        and window.filter[0] * window.filter[1] <= VECTOR
        and all(step == 1 or size == 1 for step, size in zip(window.dilation, window.filter, strict=True))
        and layer.source.shape[3] >= GROUP
        and max(layer.output.shape[1:3]) > 1
    )


def _is_turned(source: Tensor, output: Tensor) -> bool:
    """Return whether rows of the ring run along the height; if so, an output of another size cannot be in place."""
    _, height, width, _ = output.shape
    # Turned only if it can be in place, or if rows are so short that it pays off anyway.
    return height > width and (source.shape == output.shape or width < _SHORT)


def _axis(layer: Weighted[DepthwiseConv2D], dimension: int) -> _Axis:
    """Return the fields of a ``struct mlf_depthwise_axis`` for ``dimension`` 1 or 2 of the NHWC images."""
    window, source, output, axis = layer.window, layer.source.shape, layer.output.shape, dimension - 1
    return {
        "input": source[dimension],
        "output": output[dimension],
        "filter": window.filter[axis],
        "stride": window.stride[axis],
        "padding": window.padding[axis][0],
        "input_step": math.prod(source[dimension + 1 :]),
        "output_step": math.prod(output[dimension + 1 :]),
    }


def _pitch(axes: Mapping[str, _Axis]) -> int:
    """Return the bytes of a channel in the ring."""
    inner = axes["inner"]
    wide = (inner["output"] - 1) * inner["stride"] + inner["filter"]
    return axes["outer"]["filter"] * max(wide, inner["padding"] + inner["input"])


def _order(rows: int, taps: int) -> Array:
    """Return the tap for each byte of a window, for each slot of the filter's first row: uint8 [rows, 16]."""
    order = np.zeros((rows, VECTOR), np.uint8)
    for first in range(rows):
        for byte in range(taps):
            order[first, byte] = byte - byte % rows + (byte % rows - first) % rows
    # The ring rotates: the filter's first row may be in any slot, with the weights rotated likewise.
    return order


def _image_lines(source: Tensor, axes: Mapping[str, _Axis]) -> Sequence[str]:
    sides = {name: f"{{{', '.join(map(str, axis.values()))}}}" for name, axis in axes.items()}
    sizes = {"batches": source.shape[0], "channels": source.shape[3]}
    return static_struct_lines("mlf_depthwise_image", "image", {**sizes, **sides})


def _overwrites(source: Tensor, output: Tensor, *, turned: bool) -> tuple[int, ...]:
    """Return the positions of inputs that the output may overwrite: rows are copied before output replaces them."""
    smaller = output.shape[1] <= source.shape[1] and output.shape[2] <= source.shape[2]
    # A smaller output ends before the rows that are still to be read, unless lines run along columns.
    return (0,) if source.shape == output.shape or (smaller and not turned) else ()
