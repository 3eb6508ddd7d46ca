"""The sizes that functions of CMSIS-NN are told of a layer, and what its callers may be compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import Tensor
from mlfbuild.graph.ops.window import Pair, Window

PLAIN, DSP, MVE = "plain C", "DSP", "MVE"
FEATURES = (PLAIN, DSP, MVE)
"""What the library's code is made for: it takes other ways, and other scratch memory, with ``ARM_MATH_DSP`` and with
``ARM_MATH_MVEI``, which it defines by the features that a compiler states. MVE includes DSP."""

LARGEST_SIZE = (1 << 15) - 1
"""Of a dimension of an image, stride or padding: the library keeps them in 16 bits here and there."""


def features_of(settings: Settings) -> str:
    """Return which of ``FEATURES`` code for the processor of ``settings`` is compiled with."""
    return MVE if settings.has("mve") else DSP if settings.has("dsp") else PLAIN


@dataclass(frozen=True)
class Layer:
    """A window over an NHWC image; pairs are (height, width), paddings are before the image."""

    batches: int
    image: Pair
    channels: int
    output: Pair
    output_channels: int
    filter: Pair = (1, 1)
    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)

    @classmethod
    def of(cls, window: Window, source: Tensor, output: Tensor) -> Layer:
        """Return the sizes of ``window`` over ``source``; the distance of a filter's only row from the next is 1."""
        batches, height, width, channels = source.shape
        dilation = tuple(step if size > 1 else 1 for step, size in zip(window.dilation, window.filter, strict=True))
        return cls(
            batches,
            (height, width),
            channels,
            (output.shape[1], output.shape[2]),
            output.shape[3],
            window.filter,
            window.stride,
            (window.padding[0][0], window.padding[1][0]),
            (dilation[0], dilation[1]),
        )

    @property
    def taps(self) -> int:
        """Positions of the filter."""
        return self.filter[0] * self.filter[1]

    @property
    def columns(self) -> int:
        """Inputs of an output: those under the filter, of all channels."""
        return self.taps * self.channels

    @property
    def small(self) -> bool:
        """Whether all sizes are such as the library can count with."""
        pairs = (*self.image, *self.output, *self.filter, *self.stride, *self.padding, *self.dilation)
        reach = max(size + 2 * pad for size, pad in zip(self.image, self.padding, strict=True))
        return max(self.batches, self.channels, self.output_channels, *pairs, reach) <= LARGEST_SIZE
