"""int8 DEPTHWISE_CONV_2D with filters of at most 3x3 for cores with Thumb instructions and without SIMD."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Graph, Node, Tensor, activation_range
from mlfbuild.native.graph.bases import convolution_tensors
from mlfbuild.native.graph.ops import DepthwiseConv2D
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall, Parameter, ScratchBuffer, folded_bias
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.depthwise import TAPS, axis_lines, is_small, padded_filters
from mlfbuild.native.lowering.common.thumb import MAGNITUDES, ThumbChannels, thumb_channels

_ROTATIONS = 27
"""Words of a filter in three rotations: ``MLF_ROTATIONS_THUMB``."""
_WORD = 4


def lower_depthwise_conv2d_thumb(graph: Graph, node: Node, operator: DepthwiseConv2D) -> KernelCall | str:
    """Return the call of ``mlf_depthwise_conv2d_int8_thumb``, or the reason why the portable kernel must do it.

    The portable kernel is used for larger or dilated filters, those of fewer than four weights, for a depth multiplier
    other than 1, and if the kernel's requantisation is not exact.
    """
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    if weights.data is None or not is_small(operator, weights):
        return "is for small filters of constants, without a depth multiplier"
    along = _along(source, output)
    folded = folded_bias(None if bias is None else bias.data, weights.data, 3, zero_point(source))
    minimum, maximum = activation_range(operator.activation, output)
    rescales = operator.rescales(source, weights, output)
    channels = thumb_channels(padded_filters(weights.data, along), folded, rescales, zero_point(output), minimum)
    if channels is None:
        return NOT_EXACT
    pairs = -(-output.shape[along] // 2)
    columns = (pairs - 1) * operator.stride[along - 1] + TAPS
    # Written in place line by line: equal shapes always, a smaller output only along rows.
    in_place = source.shape == output.shape or (along == 2 and output.shape[2] <= source.shape[2])
    return KernelCall("depthwise_conv2d", "depthwise_conv2d_thumb.h", (
        Parameter("const int8_t *", "input", source.name),
        Parameter("const int32_t *", "filter", Constant.packed(_pack(channels), "depthwise_conv2d_thumb.h")),
        Parameter("int8_t *", "output", output.name),
        Parameter("int32_t *", "scratch", ScratchBuffer(_WORD * (_ROTATIONS + TAPS * columns + 2 * pairs))),
    ), (
        "static const struct mlf_depthwise_thumb depthwise = {",
        *axis_lines("along", operator, source, output, along),
        *axis_lines("across", operator, source, output, 3 - along),
        f"    .batches = {source.shape[0]},",
        f"    .channels = {source.shape[3]},",
        f"    .zero_point = {zero_point(source)},",
        f"    .rounding = {2 * zero_point(output) + 1},",
        f"    .minimum = {minimum},",
        f"    .maximum = {maximum},",
        f"    .positive = {int(channels.positive)},",
        "};",
        "mlf_depthwise_conv2d_int8_thumb(&depthwise, input, filter, output, scratch);",
    ), (0,) if in_place else ())  # fmt: skip


def _along(source: Tensor, output: Tensor) -> int:
    """Return the dimension of the images, 1 or 2, that the kernel's lines run along.

    Long lines cost least, but rows permit an output that is smaller than the input to overwrite it.
    """
    shrinks = source.shape != output.shape and output.shape[2] <= source.shape[2]
    return 2 if shrinks or output.shape[2] >= output.shape[1] else 1


def _pack(channels: ThumbChannels) -> npt.NDArray[np.int32]:
    """Return the filter of ``kernels/thumb/depthwise_conv2d_thumb.h``."""
    taps = channels.weights[:, : TAPS * TAPS].reshape(-1, TAPS, TAPS).astype(np.int64)
    # Three products of a column are added in a half word before they are separated, if they fit.
    large = np.abs(taps).sum(axis=1).max(axis=1) > MAGNITUDES
    bias, multiplier, shift = channels.parameters.T
    rows = (taps & 0xFF) @ np.array([1, 1 << 8, 1 << 16])
    # The shift shares a word with three weights of 8 bits.
    rows[:, 0] |= shift << 24
    packed = np.column_stack([bias, multiplier | large.astype(np.int64) << 31, rows])
    return packed.astype(np.uint32).view(np.int32).reshape(-1)
