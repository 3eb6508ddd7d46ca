"""DEPTHWISE_CONV_2D on int8 for Helium (MVE)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mlfbuild.compilers.native.lowering.call import (
    Constant,
    KernelCall,
    Parameter,
    ScratchBuffer,
    folded_bias,
    struct_lines,
)
from mlfbuild.compilers.native.lowering.common.activation import quantization_constant, zero_point
from mlfbuild.compilers.native.lowering.common.mve import GROUP, VECTOR, channels_in_fours, rounding, static_lines
from mlfbuild.graph import Array, Graph, Node, Tensor
from mlfbuild.graph.bases import Window, convolution_tensors
from mlfbuild.graph.ops import DepthwiseConv2D

_Axis = Mapping[str, int]

_MOST_CHANNELS = 19
"""The most channels that the ring holds: ``MLF_DEPTHWISE_MOST``."""
_OFFSET_CHANNELS = 24
"""Those channels, rounded up to whole vectors of offsets."""
_OFFSETS = 1 << 16
_SHORT = 8
"""If output rows are shorter, the image is processed by columns instead."""


def lower_depthwise_conv2d_mve(graph: Graph, node: Node, operator: DepthwiseConv2D) -> KernelCall | None:
    """Return the call of ``mlf_depthwise_conv2d_int8_mve``; ``None`` if the kernel does not support the node."""
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    assert weights.data is not None
    window = operator.window(weights)
    if not _fits(operator, window, source, output):
        return None
    turned = _is_turned(source, output)
    inner = 1 if turned else 2
    axes = {"inner": _axis(window, source, output, inner), "outer": _axis(window, source, output, 3 - inner)}
    pitch = _pitch(axes)
    if pitch * _OFFSET_CHANNELS > _OFFSETS or axes["inner"]["output_step"] + GROUP > _OFFSETS:
        return None
    rescales = operator.rescales(source, weights, output)
    folded = folded_bias(None if bias is None else bias.data, weights.data, 3, zero_point(source))
    rest = output.shape[3] % GROUP
    if rest:  # the last group is the last four channels
        folded = np.concatenate([folded[:-rest], folded[-GROUP:]])
        table = channels_in_fours(folded, (*rescales[:-rest], *rescales[-GROUP:]))
    else:
        table = channels_in_fours(folded, rescales)
    taps = weights.data[0].transpose((2, 0, 1) if turned else (2, 1, 0))
    rows = axes["outer"]["filter"]
    step = rows * axes["inner"]["stride"]
    word = f"step{step if step in (3, 6) else ''}_{rounding(rescales, operator.activation, output)}"
    arguments = "&image, quantization, input, filter, channels, order"
    scratch = 2 * VECTOR + min(source.shape[3], _MOST_CHANNELS) * pitch + VECTOR
    return KernelCall("depthwise_conv2d", "depthwise_conv2d_mve.h", (
        Parameter("const struct mlf_quantization *", "quantization",
                  quantization_constant(source, output, operator.activation)),
        Parameter("const int8_t *", "input", source.name),
        Parameter("const int8_t *", "filter", Constant.array("filter", "int8_t", np.ascontiguousarray(taps))),
        Parameter("const struct mlf_channels4 *", "channels", table),
        Parameter("const uint8_t *", "order", Constant.array("order", "uint8_t", _order(rows, taps[0].size))),
        Parameter("void *", "scratch", ScratchBuffer(scratch)),
        Parameter("int8_t *", "output", output.name),
    ), (
        *_image_lines(source, axes),
        f"mlf_depthwise_conv2d_int8_mve({arguments}, mlf_depthwise_{word}, scratch, output);",
    ), _overwrites(source, output, turned=turned))  # fmt: skip


def _fits(operator: DepthwiseConv2D, window: Window, source: Tensor, output: Tensor) -> bool:
    """Return whether the kernel supports filter and image: adjacent taps in a vector, four channels, two outputs."""
    return (
        operator.depth_multiplier == 1
        and window.filter[0] * window.filter[1] <= VECTOR
        and all(step == 1 or size == 1 for step, size in zip(window.dilation, window.filter, strict=True))
        and source.shape[3] >= GROUP
        and max(output.shape[1:3]) > 1
    )


def _is_turned(source: Tensor, output: Tensor) -> bool:
    """Return whether rows of the ring run along the height; if so, an output of another size cannot be in place."""
    _, height, width, _ = output.shape
    return height > width and (source.shape == output.shape or width < _SHORT)


def _axis(window: Window, source: Tensor, output: Tensor, dimension: int) -> _Axis:
    """Return the fields of a ``struct mlf_depthwise_axis`` for ``dimension`` 1 or 2 of the NHWC images."""
    axis = dimension - 1
    return {
        "input": source.shape[dimension],
        "output": output.shape[dimension],
        "filter": window.filter[axis],
        "stride": window.stride[axis],
        "padding": window.padding[axis][0],
        "input_step": math.prod(source.shape[dimension + 1 :]),
        "output_step": math.prod(output.shape[dimension + 1 :]),
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
    return order


def _image_lines(source: Tensor, axes: Mapping[str, _Axis]) -> Sequence[str]:
    fields = {"batches": str(source.shape[0]), "channels": str(source.shape[3])}
    for name, axis in axes.items():
        fields[name] = f"{{{', '.join(str(value) for value in axis.values())}}}"
    return static_lines(struct_lines("mlf_depthwise_image", "image", fields))


def _overwrites(source: Tensor, output: Tensor, *, turned: bool) -> tuple[int, ...]:
    """Return the positions of inputs that the output may overwrite: rows are copied before output replaces them."""
    smaller = output.shape[1] <= source.shape[1] and output.shape[2] <= source.shape[2]
    return (0,) if source.shape == output.shape or (smaller and not turned) else ()
