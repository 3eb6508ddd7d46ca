"""FULLY_CONNECTED on int8 for Helium (MVE)."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.bases import convolution_tensors
from mlfbuild.native.graph.ops import FullyConnected
from mlfbuild.native.lowering.call import KernelCall, struct_lines
from mlfbuild.native.lowering.common.mve import (
    MANY_CHANNELS,
    MOST_CHANNELS,
    matrix_parameters,
    rounding,
    shape_word,
    static_lines,
)


def lower_fully_connected_mve(graph: Graph, node: Node, operator: FullyConnected) -> KernelCall | str:
    """Return the call of ``mlf_fully_connected_int8_mve``, or of the 1x1 convolution if there are several rows.

    A reason if there are too many outputs for them.
    """
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    outputs, inputs = weights.shape
    rows = source.elements // inputs
    if outputs > MOST_CHANNELS:
        return MANY_CHANNELS
    rescales = operator.rescales(source, weights, output)
    word = f"{shape_word(inputs, 1)}_{rounding(rescales, operator.activation, output)}"
    parameters = matrix_parameters(source, weights, bias, output, operator.activation, rescales, 1)
    if rows == 1:
        arguments = f"{inputs}, {outputs}, quantization, input, filter, channels, mlf_dot_1x8_{word}, output"
        body = (f"mlf_fully_connected_int8_mve({arguments});",)
        return KernelCall("fully_connected", "fully_connected_mve.h", parameters, body)
    window = {
        "batches": "1",
        "input": f"{{1, {rows}}}",
        "input_channels": str(inputs),
        "output": f"{{1, {rows}}}",
        "output_channels": str(outputs),
        "filter": "{1, 1}",
        "stride": "{1, 1}",
        "dilation": "{1, 1}",
        "padding": "{0, 0}",
    }
    return KernelCall("fully_connected", "conv2d_mve.h", parameters, (
        *static_lines(struct_lines("mlf_window", "window", window)),
        f"mlf_conv2d_int8_mve(&window, quantization, input, filter, channels, mlf_dot_2x4_{word}, 0, NULL, output);",
    ))  # fmt: skip
