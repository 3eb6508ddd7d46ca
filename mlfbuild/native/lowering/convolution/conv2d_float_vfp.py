"""CONV_2D and FULLY_CONNECTED of several rows on float32 for scalar FPUs."""

from __future__ import annotations

from functools import partial

import numpy as np

from mlfbuild.native.graph.ops import Conv2D, FullyConnected
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.activation import float_range_line
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.parameters import array, float_bias, reads, writes
from mlfbuild.native.lowering.common.window import static_lines, window_lines
from mlfbuild.native.lowering.convolution.conv2d_float_mve import in_groups

_GROUP = 4
"""Output channels and pixels that the kernel computes together."""
_MOST_TAPS = 64
"""The most taps of a filter; a call has 24 bytes on the stack for each."""


def lower_fully_connected_float_vfp(layer: Weighted[FullyConnected]) -> KernelCall | str:
    """Return the call of the 1x1 convolution; a reason for fewer rows than it computes together."""
    return lower_float_vfp(layer) if layer.rows >= _GROUP else f"is for at least {_GROUP} rows"


def lower_float_vfp(layer: Weighted[Conv2D | FullyConnected]) -> KernelCall | str:
    """Return the call of ``mlf_conv2d_float_vfp``; a reason if the weights do not fit it."""
    window, weights, channels = layer.window, layer.weights, layer.output.shape[-1]
    taps = window.filter[0] * window.filter[1]
    # Taps in the padding multiply zeros, which would make NaN of infinite weights.
    if channels < _GROUP or taps > _MOST_TAPS or weights.data is None or not np.isfinite(weights.data).all():
        return f"is for finite constant weights, at least {_GROUP} channels and at most {_MOST_TAPS} taps"
    block = partial(in_groups, layer.matrix, _GROUP)
    padding = [array("padding", "float", np.zeros(layer.source.shape[3], np.float32))] if layer.is_padded else []
    return KernelCall(layer.word, "conv2d_float_vfp.h", (
        reads("input", layer.source),
        array("filter", "float", block(), block, order="dot_4x4_float_vfp.h"),
        float_bias(layer.bias, channels),
        *padding,
        writes("output", layer.output),
    ), (
        *static_lines(window_lines(layer.node, window, *layer.images)),
        float_range_line(layer.operator.activation),
        f"struct mlf_run_vfp runs[{taps}];",
        f"mlf_conv2d_float_vfp(&window, range, input, filter, bias, {'padding' if padding else 'NULL'}, runs, output);",
    ))  # fmt: skip
