"""CONV_2D: input NHWC, weights OHWI, optional bias [O], output NHWO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlfbuild.graph.ops.accumulate import Sums
from mlfbuild.graph.ops.convolution import Convolution
from mlfbuild.graph.types import Tensor


@dataclass(frozen=True)
class Conv2D(Convolution):
    """Two-dimensional convolution; every output channel sums over all input channels."""

    name: ClassVar[str] = "CONV_2D"
    channel_axis: ClassVar[int] = 0

    def _check_channels(self, source: Tensor, weights: Tensor) -> str | None:
        if weights.shape[3] == source.shape[3]:
            return None
        return f"the weights {weights} are for {weights.shape[3]} input channels, {source} has {source.shape[3]}"

    def _multiply(self, pixels: Sums, factors: Sums) -> Sums:
        sums: Sums = pixels @ factors.T
        return sums
