"""The scratch memory that functions of CMSIS-NN v7.0.0 ask for: what its own ``*_get_buffer_size`` functions return.

They are asked at compile time here, once for each of ``FEATURES``, as built with GCC or clang. Tests hold each of them
against the library's own. All sizes are in bytes.
"""

from __future__ import annotations

from mlfbuild.compilers.native.cmsis_nn.layer import DSP, MVE, PLAIN, Layer

_INT16 = 2
_INT32 = 4
_MVE_CHANNELS = 124
"""Channels that a depthwise convolution gathers at a time (``CH_IN_BLOCK_MVE``)."""
_MVE_ROWS = 4
"""Windows that are gathered for one product of matrices."""
_SHORT_SUMS = 512
"""Taps of a depthwise convolution of int16 whose sums fit 32 bits."""


def _up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def is_pointwise(layer: Layer) -> bool:
    """Whether a convolution is taken for one of 1x1, which gathers nothing."""
    return layer.filter == layer.dilation == (1, 1) and layer.padding == (0, 0)


def is_one_row(layer: Layer) -> bool:
    """Whether a convolution is taken for one of a row, ``arm_convolve_1_x_n_s8``."""
    one = layer.image[0] == 1 and layer.filter[0] == 1 and layer.dilation[1] == 1
    return one and not is_pointwise(layer) and layer.stride[1] * layer.channels % 4 == 0


def convolve_s8(layer: Layer, features: str) -> int:
    """Return ``arm_convolve_wrapper_s8_get_buffer_size``."""
    if is_pointwise(layer):
        return 0
    if features == MVE and is_one_row(layer):
        parts = one_row_parts(layer)
        if parts is not None:
            right = parts[2]
            before = layer.padding[1] * layer.channels
            after = right * layer.channels if _asymmetry(layer) else before
            return max(layer.columns + before, layer.columns - layer.channels + after)
    return _gathered_s8(layer, features)


def _gathered_s8(layer: Layer, features: str) -> int:
    if features == MVE:
        return _MVE_ROWS * _up(layer.columns, 16)
    return 2 * _up(layer.columns, 4) * _INT16


def _asymmetry(layer: Layer) -> int:
    """Return how much more padding there is to the right, as C's ``%`` does: negative for negative padding."""
    total = (layer.output[1] - 1) * layer.stride[1] + layer.filter[1] - layer.image[1]
    return total % 2 if total >= 0 else -(-total % 2)


def one_row_parts(layer: Layer) -> tuple[int, int, int] | None:
    """Return how many outputs the library's MVE code computes with padding on the left, without, and on the right.

    ``None`` where it leaves a row to the code for images.
    """
    pad, stride = layer.padding[1], layer.stride[1]
    more = pad + _asymmetry(layer)
    right = max(1, _truncated(more + stride - 1, stride)) if more != 0 else 0
    left = max(1, (pad + stride - 1) // stride) if pad != 0 else 0
    middle = max(layer.output[1] - (right + left), 0)
    return (left, middle, right) if left + middle + right == layer.output[1] else None


def _truncated(dividend: int, divisor: int) -> int:
    """Return the quotient as C does, towards zero."""
    return dividend // divisor if dividend >= 0 else -(-dividend // divisor)


def depthwise_s8(layer: Layer, features: str) -> int:
    """Return ``arm_depthwise_conv_wrapper_s8_get_buffer_size``."""
    if features == MVE and layer.channels == 1 and layer.output_channels > 1:
        return convolve_s8(layer, features) + layer.taps * layer.output_channels
    alone = layer.channels == layer.output_channels and layer.batches == 1 and layer.dilation == (1, 1)
    if not alone or features == PLAIN:
        return 0
    if features == MVE:
        return _MVE_ROWS * _MVE_CHANNELS * layer.taps
    return 0 if is_3x3(layer) else layer.columns * _INT16


def is_3x3(layer: Layer) -> bool:
    """Whether a depthwise convolution is taken for one of 3x3, where there is no MVE."""
    return layer.filter == (3, 3) and max(layer.padding) <= 1


def average_pool(layer: Layer, features: str) -> int:
    """Return ``arm_avgpool_s8_get_buffer_size``, or that of ``_s16``."""
    return layer.channels * _INT32 if features == DSP else 0


def convolve_s16(layer: Layer, features: str) -> int:
    """Return ``arm_convolve_wrapper_s16_get_buffer_size``."""
    if features == MVE:
        return _MVE_ROWS * _up(layer.columns, 8) * _INT16
    return 2 * layer.columns * _INT16


def depthwise_s16(layer: Layer, features: str) -> int:
    """Return ``arm_depthwise_conv_wrapper_s16_get_buffer_size``."""
    if not is_fast_s16(layer) or features == PLAIN:
        return 0
    return _MVE_ROWS * layer.columns * _INT16 + 8 if features == MVE else layer.columns * _INT16


def is_fast_s16(layer: Layer) -> bool:
    """Whether a depthwise convolution of int16 takes the library's quick way."""
    return layer.channels == layer.output_channels and layer.dilation == (1, 1) and layer.taps < _SHORT_SUMS


def sums_of_matrix(outputs: int, features: str) -> int:
    """Return ``arm_fully_connected_s8_get_buffer_size``: what MVE wants to be told of the weights."""
    return outputs * _INT32 if features == MVE else 0
