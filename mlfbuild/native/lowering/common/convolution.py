"""Lower CONV_2D and DEPTHWISE_CONV_2D to portable kernels, which differ only in their name.

Layers whose int8 weights have a zero point, as those of uint8 networks, have portable kernels of their own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlfbuild.native.graph import Array, DType, Tensor
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, channel_table
from mlfbuild.native.lowering.common.activation import float_range_line, zero_point
from mlfbuild.native.lowering.common.int16 import int16_parameters, int16_range_line, int16_way
from mlfbuild.native.lowering.common.layer import Weighted, WeightedOperator, int8_parameters
from mlfbuild.native.lowering.common.parameters import array, float_bias, reads, writes
from mlfbuild.native.lowering.common.window import window_lines
from mlfbuild.native.lowering.trained import trained


def lower_offset(layer: Weighted[Conv2D | FullyConnected]) -> KernelCall:
    """Return the call of ``mlf_conv2d_offset_int8``, for which each row of a matrix is an image of one pixel."""
    source, output = layer.images
    if isinstance(layer.operator, FullyConnected):
        source, output = (replace(each, shape=(layer.rows, 1, 1, each.shape[3])) for each in (source, output))
    filter_ = array("filter", "int8_t", layer.weights.known)
    offset = trained(zero_point(layer.weights))
    return KernelCall(layer.word, "conv2d_offset.h", _parameters(layer, filter_, wide_weights(layer.weights)), (
        *window_lines(layer.node, layer.window, source, output),
        f"mlf_conv2d_offset_int8(&window, quantization, {offset}, input, filter, channels, output);",
    ))  # fmt: skip


def lower_depthwise_conv2d_offset(layer: Weighted[DepthwiseConv2D], overwrites: tuple[int, ...]) -> KernelCall:
    """Return the call of ``mlf_depthwise_conv2d_wide_int8``."""
    wide = wide_weights(layer.weights)
    parameters = _parameters(layer, array("filter", "int16_t", wide), wide)
    return KernelCall("depthwise_conv2d", "depthwise_conv2d_wide.h", parameters, (
        *window_lines(layer.node, layer.window, *layer.images),
        "mlf_depthwise_conv2d_wide_int8(&window, quantization, input, filter, channels, output);",
    ), overwrites)  # fmt: skip


def _parameters(layer: Weighted[WeightedOperator], filter_: Parameter, multiplied: Array) -> tuple[Parameter, ...]:
    # Without the zero point of the weights, so that only the sum of the inputs is left for the kernel.
    return int8_parameters(layer, filter_, channel_table(layer.folded_bias(multiplied), layer.rescales))


def wide_weights(weights: Tensor) -> Array:
    """Return the weights without their zero point, which have 9 bits, as int16.

    The result has the shape of ``weights``. Kernels for such layers multiply 16-bit numbers, and their sums need no
    term for the zero point of the weights.
    """
    return np.asarray(weights.known.astype(np.int16) - zero_point(weights), np.int16)


def lower_convolution(layer: Weighted[Conv2D | DepthwiseConv2D], overwrites: tuple[int, ...] = ()) -> KernelCall:
    """Return the call of ``mlf_<word>_<type>`` in ``<word>.h`` or ``<word>_int16.h``.

    It serves every CPU and every type, and is the last candidate of its operator. ``overwrites`` are positions of
    inputs whose memory the output may take.
    """
    word, weights = layer.word, layer.weights
    window = window_lines(layer.node, layer.window, *layer.images)
    if layer.source.dtype is DType.FLOAT32:
        values = weights.name if weights.data is None else Constant.array("filter", "float", weights.data)
        return KernelCall(word, f"{word}.h", (
            reads("input", layer.source),
            Parameter("const float *", "filter", values),
            float_bias(layer.bias, layer.output.shape[3]),
            writes("output", layer.output),
        ), (
            *window,
            float_range_line(layer.operator.activation),
            f"mlf_{word}_float(&window, range, input, filter, bias, output);",
        ), overwrites)  # fmt: skip
    filter_ = array("filter", "int8_t", weights.known)
    if layer.source.dtype is DType.INT16:
        way = int16_way(layer)
        return KernelCall(word, f"{word}_int16.h", int16_parameters(layer, filter_, way), (
            *window,
            int16_range_line(layer.operator.activation, layer.output),
            f"mlf_{word}_int16_{way}(&window, range, input, filter, channels, output);",
        ), overwrites)  # fmt: skip
    return KernelCall(word, f"{word}.h", _parameters(layer, filter_, weights.known), (
        *window,
        f"mlf_{word}_int8(&window, quantization, input, filter, channels, output);",
    ), overwrites)  # fmt: skip
