"""FULLY_CONNECTED on int8 for Helium (MVE)."""

from __future__ import annotations

from mlfbuild.native.graph.ops import FullyConnected
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.mve import MANY_CHANNELS, MOST_CHANNELS, matrix_parameters, rounding, shape_word
from mlfbuild.native.lowering.common.window import static_lines, window_lines


def lower_fully_connected_mve(layer: Weighted[FullyConnected]) -> KernelCall | str:
    """Return the call of ``mlf_fully_connected_int8_mve``, or of the 1x1 convolution if there are several rows.

    A reason if there are too many outputs for them.
    """
    outputs, inputs = layer.weights.shape
    if outputs > MOST_CHANNELS:
        return MANY_CHANNELS
    word = f"{shape_word(inputs, 1)}_{rounding(layer)}"
    parameters = matrix_parameters(layer, 1)
    if layer.rows == 1:
        arguments = f"{inputs}, {outputs}, quantization, input, filter, channels, mlf_dot_1x8_{word}, output"
        body = (f"mlf_fully_connected_int8_mve({arguments});",)
        return KernelCall("fully_connected", "fully_connected_mve.h", parameters, body)
    return KernelCall("fully_connected", "conv2d_mve.h", parameters, (
        *static_lines(window_lines(layer.node, layer.window, *layer.images)),
        f"mlf_conv2d_int8_mve(&window, quantization, input, filter, channels, mlf_dot_2x4_{word}, 0, NULL, output);",
    ))  # fmt: skip
