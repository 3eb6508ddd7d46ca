"""CONV_2D, DEPTHWISE_CONV_2D and FULLY_CONNECTED on float32 for Helium (MVE with floats)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from mlfbuild.native.graph import Array, Graph, Node, Tensor
from mlfbuild.native.graph.bases import Window, convolution_tensors
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, ScratchBuffer, float_bias
from mlfbuild.native.lowering.common.activation import float_range_line
from mlfbuild.native.lowering.common.mve import VECTOR, as_one_row, static_lines
from mlfbuild.native.lowering.common.window import window_lines

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


def lower_conv2d_float_mve(graph: Graph, node: Node, operator: Conv2D) -> KernelCall | str:
    """Return the call of ``mlf_conv2d_float_mve``; a reason for few channels or computed weights."""
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    # With fewer channels, the last group would begin before the first channel.
    if output.shape[3] < _GROUP or not weights.constant:
        return _FEW
    window = operator.window(weights)
    lines = _window_lines(node, window, *as_one_row(window, source, output))
    # A dilated row has gaps, so that no window can be read in place.
    batch = _COPIES if window.filter[1] > 1 and window.dilation[1] > 1 else 0
    padded = window.padding != ((0, 0), (0, 0))
    size = _SIZE * weights.elements // weights.shape[0]
    scratch = ScratchBuffer((batch or 3) * size + VECTOR) if batch or padded else None
    return _convolution("conv2d", graph, node, operator, lines, batch, scratch)


def lower_fully_connected_float_mve(graph: Graph, node: Node, operator: FullyConnected) -> KernelCall | str:
    """Return the call of ``mlf_fully_connected_float_mve``, or of the 1x1 convolution if there are several rows.

    A reason if there are too few outputs for them.
    """
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    outputs, inputs = weights.shape
    rows = source.elements // inputs
    if outputs < _GROUP:
        return _FEW
    if rows > 1:
        window = Window((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)))
        images = replace(source, shape=(1, 1, rows, inputs)), replace(output, shape=(1, 1, rows, outputs))
        return _convolution(
            "fully_connected", graph, node, operator, _window_lines(node, window, *images), 0, scratch=None
        )
    return KernelCall("fully_connected", "fully_connected_float_mve.h", _parameters(graph, node), (
        float_range_line(operator.activation),
        f"mlf_fully_connected_float_mve({inputs}, {outputs}, range, input, filter, bias, output);",
    ))  # fmt: skip


def _convolution(
    word: str,
    graph: Graph,
    node: Node,
    operator: Conv2D | FullyConnected,
    lines: tuple[str, ...],
    batch: int,
    scratch: ScratchBuffer | None,
) -> KernelCall:
    parameters = _parameters(graph, node)
    if scratch is not None:
        parameters = (*parameters, Parameter("void *", "scratch", scratch))
    memory = "NULL" if scratch is None else "scratch"
    return KernelCall(word, "conv2d_float_mve.h", parameters, (
        *lines,
        float_range_line(operator.activation),
        f"mlf_conv2d_float_mve(&window, range, input, filter, bias, {batch}, {memory}, output);",
    ))  # fmt: skip


def _window_lines(node: Node, window: Window, source: Tensor, output: Tensor) -> tuple[str, ...]:
    """Return the local ``window``, whose numbers of channels are in bytes."""
    images = (replace(tensor, shape=(*tensor.shape[:3], _SIZE * tensor.shape[3])) for tensor in (source, output))
    return static_lines(window_lines(node, window, *images))


def _parameters(graph: Graph, node: Node) -> tuple[Parameter, ...]:
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    block = partial(_blocked, weights.known.reshape(weights.shape[0], -1))
    return (
        Parameter("const float *", "input", source.name),
        Parameter(
            "const float *", "filter", Constant.array("filter", "float", block(), block, order="dot_3x8_float_mve.h")
        ),
        Parameter("const float *", "bias", float_bias(None if bias is None else bias.data, weights.shape[0])),
        Parameter("float *", "output", output.name),
    )


def _blocked(weights: Array) -> Array:
    """Return ``weights`` [channels, inputs] as [groups, inputs, 8]; the last group is the last eight channels."""
    channels, inputs = weights.shape
    whole = channels - channels % _GROUP
    # The last group overlaps the one before, and computes some channels twice, so that there is no kernel for a rest.
    rows = weights if whole == channels else np.concatenate([weights[:whole], weights[-_GROUP:]])
    return np.ascontiguousarray(rows.reshape(-1, _GROUP, inputs).swapaxes(1, 2))


def lower_depthwise_conv2d_float_mve(graph: Graph, node: Node, operator: DepthwiseConv2D) -> KernelCall | str:
    """Return the call of ``mlf_depthwise_conv2d_float_mve``; a reason if weights or channels do not fit it."""
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    channels = source.shape[3]
    if operator.depth_multiplier != 1 or weights.shape[1:3] != (3, 3) or channels % _LANES or weights.data is None:
        return f"is for constant filters of 3x3 and whole groups of {_LANES} channels"
    biases = np.zeros(channels, np.float32) if bias is None or bias.data is None else bias.data
    rows = np.concatenate([biases.reshape(1, channels), weights.data.reshape(9, channels)])
    blocked = np.ascontiguousarray(rows.reshape(10, -1, _LANES).swapaxes(0, 1))
    return KernelCall("depthwise_conv2d", "depthwise_conv2d_float_mve.h", (
        Parameter("const float *", "input", source.name),
        Parameter("const float *", "filter", Constant.array("filter", "float", blocked)),
        Parameter("float *", "output", output.name),
        Parameter("void *", "scratch", ScratchBuffer(_SIZE * channels)),
    ), (
        *static_lines(window_lines(node, operator.window(weights), source, output)),
        float_range_line(operator.activation),
        "mlf_depthwise_conv2d_float_mve(&window, range, input, filter, scratch, output);",
    ), (0,) if operator.padding == ((0, 0), (0, 0)) else ())  # fmt: skip
