"""CONV_2D and FULLY_CONNECTED of several rows on float32 for scalar FPUs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from mlfbuild.native.graph import Array, Graph, Node, Tensor
from mlfbuild.native.graph.bases import Window, convolution_tensors
from mlfbuild.native.graph.ops import Conv2D, FullyConnected
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, float_bias
from mlfbuild.native.lowering.common.activation import float_range_line
from mlfbuild.native.lowering.common.mve import static_lines
from mlfbuild.native.lowering.common.window import window_lines

_GROUP = 4
"""Output channels and pixels that the kernel computes together."""
_MOST_TAPS = 64
"""The most taps of a filter; a call has 24 bytes on the stack for each."""


def lower_conv2d_float_vfp(graph: Graph, node: Node, operator: Conv2D) -> KernelCall | str:
    """Return the call of ``mlf_conv2d_float_vfp``; a reason if the weights do not fit it."""
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    return _call("conv2d", graph, node, operator, operator.window(weights), source, output)


def lower_fully_connected_float_vfp(graph: Graph, node: Node, operator: FullyConnected) -> KernelCall | str:
    """Return the call of the 1x1 convolution; a reason for fewer rows than it computes together."""
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    outputs, inputs = weights.shape
    rows = source.elements // inputs
    if rows < _GROUP:
        return f"is for at least {_GROUP} rows"
    window = Window((1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)))
    images = replace(source, shape=(1, 1, rows, inputs)), replace(output, shape=(1, 1, rows, outputs))
    return _call("fully_connected", graph, node, operator, window, *images)


def _call(
    word: str,
    graph: Graph,
    node: Node,
    operator: Conv2D | FullyConnected,
    window: Window,
    source: Tensor,
    output: Tensor,
) -> KernelCall | str:
    _, weights, bias, _ = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    taps = window.filter[0] * window.filter[1]
    # Taps in the padding multiply zeros, which would make NaN of infinite weights.
    if output.shape[3] < _GROUP or taps > _MOST_TAPS or weights.data is None or not np.isfinite(weights.data).all():
        return f"is for finite constant weights, at least {_GROUP} channels and at most {_MOST_TAPS} taps"
    block = partial(_blocked, weights.data.reshape(weights.shape[0], -1))
    filter_ = Constant.array("filter", "float", block(), block, order="dot_4x4_float_vfp.h")
    parameters: tuple[Parameter, ...] = (
        Parameter("const float *", "input", source.name),
        Parameter("const float *", "filter", filter_),
        Parameter("const float *", "bias", float_bias(None if bias is None else bias.data, output.shape[3])),
    )
    padded = window.padding != ((0, 0), (0, 0))
    if padded:
        padding = Constant.array("padding", "float", np.zeros(source.shape[3], np.float32))
        parameters = (*parameters, Parameter("const float *", "padding", padding))
    return KernelCall(word, "conv2d_float_vfp.h", (*parameters, Parameter("float *", "output", output.name)), (
        *static_lines(window_lines(node, window, source, output)),
        float_range_line(operator.activation),
        f"struct mlf_run_vfp runs[{taps}];",
        f"mlf_conv2d_float_vfp(&window, range, input, filter, bias, {'padding' if padded else 'NULL'}, runs, output);",
    ))  # fmt: skip


def _blocked(weights: Array) -> Array:
    """Return ``weights`` [channels, inputs] as [groups, inputs, 4]; the last group is the last four channels."""
    channels, inputs = weights.shape
    whole = channels - channels % _GROUP
    rows = weights if whole == channels else np.concatenate([weights[:whole], weights[-_GROUP:]])
    return np.ascontiguousarray(rows.reshape(-1, _GROUP, inputs).swapaxes(1, 2))
