"""DEPTHWISE_CONV_2D: input NHWC, weights 1HW(C*m), optional bias [C*m], output NHW(C*m), m the depth multiplier."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.bases.accumulate import Sums
from mlfbuild.native.graph.bases.convolution import Convolution
from mlfbuild.native.graph.tensors import DType, Tensor


class DepthwiseConv2D(Convolution):
    """Two-dimensional convolution within each channel: input channel c gives output channels c*m .. c*m + m - 1."""

    depth_multiplier: int = 1

    name = "DEPTHWISE_CONV_2D"
    channel_axis = 3
    int16_biases = (DType.INT64,)

    def _check_channels(self, source: Tensor, weights: Tensor) -> str | None:
        if weights.shape[0] != 1:
            return f"the weights {weights} must have 1 as first dimension"
        if self.depth_multiplier < 1 or weights.shape[3] != source.shape[3] * self.depth_multiplier:
            return f"the weights {weights} do not fit {source} times a depth multiplier of {self.depth_multiplier}"
        return None

    def _multiply(self, pixels: Sums, factors: Sums) -> Sums:
        # Output channels of an input channel are adjacent, so that repeating the pixels aligns them with the filter.
        sums: Sums = np.repeat(pixels, self.depth_multiplier, axis=-1) * factors[0]
        return sums
