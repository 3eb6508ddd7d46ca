"""Depthwise convolutions with filters of at most 3x3, whose int8 kernels compute an image line by line.

The lines run along the rows of the image or along its columns; across them is the other dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph import Array, Tensor
from mlfbuild.native.graph.ops import DepthwiseConv2D

TAPS = 3
"""Rows and columns of a padded filter."""
_LEAST = 4
"""Fewer weights are not worth the memory of a plane."""


def is_small(operator: DepthwiseConv2D, weights: Tensor) -> bool:
    """Return whether the filter has four to nine weights for each channel and is not dilated."""
    window = operator.window(weights)
    # A dilation along a dimension of one tap has no effect.
    spread = any(step > 1 and size > 1 for step, size in zip(window.dilation, window.filter, strict=True))
    small = max(window.filter) <= TAPS and math.prod(window.filter) >= _LEAST
    return small and not spread and operator.depth_multiplier == 1


def padded_filters(weights: Array, along: int) -> Array:
    """Return the nine weights of each channel, line by line; lines run along the dimension ``along``, 1 or 2."""
    taps = weights[0].transpose((2, 0, 1) if along == 2 else (2, 1, 0))
    padded = np.pad(taps, ((0, 0), *((0, TAPS - size) for size in taps.shape[1:])))
    return padded.reshape(len(padded), -1)


def axis_lines(name: str, operator: DepthwiseConv2D, source: Tensor, output: Tensor, dimension: int) -> Sequence[str]:
    """Return the lines of the field ``name`` in the kernel's struct: sizes and steps of a dimension."""
    fields = {
        "inputs": source.shape[dimension],
        "outputs": output.shape[dimension],
        "stride": operator.stride[dimension - 1],
        "padding": operator.padding[dimension - 1][0],
        "input_step": math.prod(source.shape[dimension + 1 :]),
        "output_step": math.prod(output.shape[dimension + 1 :]),
    }
    return (f"    .{name} = {{", *(f"        .{field} = {value}," for field, value in fields.items()), "    },")
