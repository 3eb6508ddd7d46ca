"""CONV_2D: input NHWC, weights OHWI, optional bias [O], output NHWO."""

from __future__ import annotations

from mlfbuild.native.graph.bases import weighted
from mlfbuild.native.graph.bases.accumulate import Sums
from mlfbuild.native.graph.bases.convolution import Convolution
from mlfbuild.native.graph.tensors import DType, Tensor


class Conv2D(Convolution):
    """Two-dimensional convolution; every output channel sums over all input channels."""

    int32_sums: bool = False
    """Whether int16 activations are summed in 32 bits if there is no bias, whose type would decide it."""

    name = "CONV_2D"
    channel_axis = 0
    int16_biases = (DType.INT64, DType.INT32)

    def sums_are_wide(self, source: Tensor, bias: Tensor | None) -> bool:
        return weighted.sums_are_wide(source, bias, int32_sums=self.int32_sums)

    def _check_channels(self, source: Tensor, weights: Tensor) -> str | None:
        if weights.shape[3] == source.shape[3]:
            return None
        return f"the weights {weights} are for {weights.shape[3]} input channels, {source} has {source.shape[3]}"

    def _multiply(self, pixels: Sums, factors: Sums) -> Sums:
        # One matrix product over the input channels for all pixels of a tap.
        sums: Sums = pixels @ factors.T
        return sums
