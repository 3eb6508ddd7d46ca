"""Depthwise convolutions with filters of at most 3x3, whose int8 kernels compute an image line by line.

The lines run along the rows of the image or along its columns; across them is the other dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph import Array
from mlfbuild.native.graph.ops import DepthwiseConv2D
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.trained import trained

TAPS = 3
"""Rows and columns of a padded filter."""
_LEAST = 4
"""Fewer weights are not worth the memory of a plane."""


def is_small(layer: Weighted[DepthwiseConv2D]) -> bool:
    """Return whether the filter has four to nine weights for each channel and is not dilated."""
    return is_dense(layer) and max(layer.window.filter) <= TAPS


def is_dense(layer: Weighted[DepthwiseConv2D]) -> bool:
    """Return whether the filter has at least four weights for each channel and is not dilated."""
    window = layer.window
    # A dilation along a dimension of one tap has no effect.
    spread = any(step > 1 and size > 1 for step, size in zip(window.dilation, window.filter, strict=True))
    return math.prod(window.filter) >= _LEAST and not spread and layer.operator.depth_multiplier == 1


def padded_filters(weights: Array, along: int, shape: tuple[int, int] = (TAPS, TAPS)) -> Array:
    """Return the weights of each channel, line by line; lines run along the dimension ``along``, 1 or 2.

    ``weights`` are int8 [1, rows, columns, channels], and the result is int8 [channels, weights] with zeros for those
    that are missing in a filter of ``shape``, lines and taps of a line.
    """
    taps = weights[0].transpose((2, 0, 1) if along == 2 else (2, 1, 0))
    padded = np.pad(taps, ((0, 0), *((0, size - own) for size, own in zip(shape, taps.shape[1:], strict=True))))
    return padded.reshape(len(padded), -1)


def depthwise_lines(
    layer: Weighted[DepthwiseConv2D], c_type: str, along: int, rounding: int, **more: object
) -> Sequence[str]:
    """Return the local ``depthwise``, a struct ``c_type``, whose last fields are ``more``.

    It is static, so that it is in flash and not made on the stack in each call. Lines run along the dimension
    ``along``, 1 or 2.
    """
    minimum, maximum = layer.bounds
    fields = {
        "batches": layer.source.shape[0],
        "channels": layer.source.shape[3],
        "zero_point": trained(zero_point(layer.source)),
        "rounding": trained(rounding),
        "minimum": minimum,
        "maximum": maximum,
        **more,
    }
    return (
        f"static const struct {c_type} depthwise = {{",
        *_axis_lines("along", layer, along),
        *_axis_lines("across", layer, 3 - along),
        *(f"    .{field} = {value}," for field, value in fields.items()),
        "};",
    )


def _axis_lines(name: str, layer: Weighted[DepthwiseConv2D], dimension: int) -> Sequence[str]:
    """Return the lines of the field ``name`` in the kernel's struct: sizes and steps of a dimension."""
    source, output = layer.source.shape, layer.output.shape
    fields = {
        "inputs": source[dimension],
        "outputs": output[dimension],
        "stride": layer.operator.stride[dimension - 1],
        "padding": layer.operator.padding[dimension - 1][0],
        "input_step": math.prod(source[dimension + 1 :]),
        "output_step": math.prod(output[dimension + 1 :]),
    }
    return (f"    .{name} = {{", *(f"        .{field} = {value}," for field, value in fields.items()), "    },")
