"""int8 DEPTHWISE_CONV_2D with filters of at most 3x3 for cores with Thumb instructions and without SIMD."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Tensor
from mlfbuild.native.graph.ops import DepthwiseConv2D
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.depthwise import TAPS, depthwise_lines, is_small, padded_filters
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.parameters import packed_filter, reads, scratch, writes
from mlfbuild.native.lowering.common.thumb import MAGNITUDES, ThumbChannels, thumb_channels
from mlfbuild.native.lowering.trained import trained

_ROTATIONS = 27
"""Words of a filter in three rotations: ``MLF_ROTATIONS_THUMB``."""
_WORD = 4


def lower_depthwise_conv2d_thumb(layer: Weighted[DepthwiseConv2D]) -> KernelCall | str:
    """Return the call of ``mlf_depthwise_conv2d_int8_thumb``, or the reason why the portable kernel must do it.

    The portable kernel is used for larger or dilated filters, those of fewer than four weights, for a depth multiplier
    other than 1, and if the kernel's requantisation is not exact.
    """
    source, output = layer.source, layer.output
    if layer.weights.data is None or not is_small(layer):
        return "is for small filters of constants, without a depth multiplier"
    along = _along(source, output)
    filters = padded_filters(layer.weights.data, along)
    channels = thumb_channels(filters, layer.folded_bias(), layer.rescales, zero_point(output), layer.clamp[0])
    if channels is None:
        return NOT_EXACT
    pairs = -(-output.shape[along] // 2)
    columns = (pairs - 1) * layer.operator.stride[along - 1] + TAPS
    # Written in place line by line: equal shapes always, a smaller output only along rows.
    in_place = source.shape == output.shape or (along == 2 and output.shape[2] <= source.shape[2])
    rounding, positive = 2 * zero_point(output) + 1, trained(int(channels.positive))
    return KernelCall("depthwise_conv2d", "depthwise_conv2d_thumb.h", (
        reads("input", source),
        packed_filter(Constant.packed(_pack(channels), "depthwise_conv2d_thumb.h")),
        writes("output", output),
        scratch("int32_t", _WORD * (_ROTATIONS + TAPS * columns + 2 * pairs)),
    ), (
        *depthwise_lines(layer, "mlf_depthwise_thumb", along, rounding, positive=positive),
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
