"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED on float32 for Helium (MVE with floats)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from mlfbuild.native.graph import Array
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.native.lowering.call import KernelCall, Parameter
from mlfbuild.native.lowering.common.activation import float_range_line
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.mve import VECTOR, as_one_row
from mlfbuild.native.lowering.common.parameters import (
    array,
    float_bias,
    input_and_output,
    reads,
    scratch,
    writes,
)
from mlfbuild.native.lowering.common.window import static_lines, window_lines

_GROUP = 8
"""Output channels that a kernel computes together."""
_LANES = 4
"""Elements of a vector."""
_ORDER = "dot_3x8_float_mve.h"
"""The kernel header that describes the order of weights in groups of eight channels."""
_SIZE = 4
"""Bytes of an element."""
_COPIES = 6
"""Windows that are copied at a time, if all are copied."""
_FEW = f"is for constant weights and at least {_GROUP} output channels"


def lower_conv2d_float_mve(layer: Weighted[Conv2D]) -> KernelCall | str:
    """Return the call of ``mlf_conv2d_float_mve``; a reason for few channels or computed weights."""
    # With fewer channels, the last group would begin before the first channel.
    if layer.output.shape[3] < _GROUP or not layer.weights.constant:
        return _FEW
    window = layer.window
    # A dilated row has gaps, so that no window can be read in place.
    batch = _COPIES if window.filter[1] > 1 and window.dilation[1] > 1 else 0
    return _convolution(layer, batch, (batch or 3) * _SIZE * layer.inputs + VECTOR if batch or layer.is_padded else 0)


def lower_fully_connected_float_mve(layer: Weighted[FullyConnected]) -> KernelCall | str:
    """Return the call of ``mlf_fully_connected_float_mve``, or of the 1x1 convolution if there are several rows.

    A reason if there are too few outputs for them.
    """
    outputs, inputs = layer.weights.shape
    if outputs < _GROUP:
        return _FEW
    if layer.rows > 1:
        return _convolution(layer, 0, 0)
    return KernelCall("fully_connected", "fully_connected_float_mve.h", _parameters(layer), (
        float_range_line(layer.operator.activation),
        f"mlf_fully_connected_float_mve({inputs}, {outputs}, range, input, filter, bias, output);",
    ))  # fmt: skip


def _convolution(layer: Weighted[Conv2D | FullyConnected], batch: int, size: int) -> KernelCall:
    """Return the call with ``size`` bytes of scratch memory, in which ``batch`` windows are copied at a time."""
    # The kernel counts channels in bytes.
    source, output = (replace(each, shape=(*each.shape[:3], _SIZE * each.shape[3])) for each in as_one_row(layer))
    more = [scratch("void", size)] if size else []
    return KernelCall(layer.word, "conv2d_float_mve.h", (*_parameters(layer), *more), (
        *static_lines(window_lines(layer.node, layer.window, source, output)),
        float_range_line(layer.operator.activation),
        f"mlf_conv2d_float_mve(&window, range, input, filter, bias, {batch}, {'scratch' if more else 'NULL'}, output);",
    ))  # fmt: skip


def _parameters(layer: Weighted[Conv2D | FullyConnected]) -> tuple[Parameter, ...]:
    source, output = input_and_output(layer.source, layer.output)
    block = partial(in_groups, layer.matrix, _GROUP)
    filter_ = array("filter", "float", block(), block, order=_ORDER)
    return source, filter_, float_bias(layer.bias, layer.weights.shape[0]), output


def in_groups(weights: Array, group: int) -> Array:
    """Return ``weights`` [channels, inputs] as [groups, inputs, ``group``]; the last group is the last channels."""
    channels, inputs = weights.shape
    whole = channels - channels % group
    # The last group overlaps the one before, and computes some channels twice, so that there is no kernel for a rest.
    rows = weights if whole == channels else np.concatenate([weights[:whole], weights[-group:]])
    return np.ascontiguousarray(rows.reshape(-1, group, inputs).swapaxes(1, 2))


def lower_depthwise_conv2d_float_mve(layer: Weighted[DepthwiseConv2D]) -> KernelCall | str:
    """Return the call of ``mlf_depthwise_conv2d_float_mve``; a reason if weights or channels do not fit it."""
    weights, channels = layer.weights, layer.source.shape[3]
    one = layer.operator.depth_multiplier == 1 and weights.shape[1:3] == (3, 3)
    if not one or channels % _LANES or weights.data is None:
        return f"is for constant filters of 3x3 and whole groups of {_LANES} channels"
    biases = np.zeros(channels, np.float32) if layer.bias is None else layer.bias
    rows = np.concatenate([biases.reshape(1, channels), weights.data.reshape(9, channels)])
    blocked = np.ascontiguousarray(rows.reshape(10, -1, _LANES).swapaxes(0, 1))
    return KernelCall("depthwise_conv2d", "depthwise_conv2d_float_mve.h", (
        reads("input", layer.source),
        array("filter", "float", blocked),
        writes("output", layer.output),
        scratch("void", _SIZE * channels),
    ), (
        *static_lines(window_lines(layer.node, layer.window, *layer.images)),
        float_range_line(layer.operator.activation),
        "mlf_depthwise_conv2d_float_mve(&window, range, input, filter, scratch, output);",
    ), () if layer.is_padded else (0,))  # fmt: skip
