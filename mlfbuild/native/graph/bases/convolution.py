"""Base classes of CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV: attributes, rules of bias and type, rescaling."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import field
from typing import ClassVar

import numpy as np

from mlfbuild.native.graph.bases import rules, weighted
from mlfbuild.native.graph.bases.accumulate import Sums, centred, finish
from mlfbuild.native.graph.bases.window import Padding, Pair, Window
from mlfbuild.native.graph.operator import Activation, Operator
from mlfbuild.native.graph.quantize import Rescale, activation_range, convolution_rescales
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class Filtering:
    """The common base of convolutions and TRANSPOSE_CONV: rescalings, and the width of sums.

    Not an ``Operator`` itself, because the order of its attributes would precede those of the operators.
    """

    activation: Activation
    rounded_product: bool
    """Whether the product of two scales is rounded to float32, as LiteRT does for uint8."""
    types: ClassVar[tuple[DType, ...]] = weighted.TYPES
    channel_axis: ClassVar[int]
    """The dimension of the weights for output channels."""

    def rescales(self, source: Tensor, weights: Tensor, output: Tensor) -> tuple[Rescale, ...]:
        """Return the rescaling of each output channel; none for float32.

        The factor of a channel is input scale times weight scale divided by output scale. Raises ``OverflowError`` if
        one has no fixed-point form.
        """
        if source.dtype is DType.FLOAT32:
            return ()
        channels = weights.shape[self.channel_axis]
        return convolution_rescales(source, weights, output, channels, rounded=self.rounded_product)

    def sums_are_wide(self, source: Tensor, bias: Tensor | None) -> bool:
        """Return whether sums have 64 bits.

        Only int16 activations can have them; the type of the bias decides.
        """
        return weighted.sums_are_wide(source, bias)

    def _check_rescales(self, source: Tensor, weights: Tensor, bias: Tensor | None, output: Tensor) -> str | None:
        if source.dtype is DType.FLOAT32:
            return None
        wide = self.sums_are_wide(source, bias)
        return rules.computable(
            lambda: weighted.check_rescales(self.rescales(source, weights, output), wide=wide),
            lambda: activation_range(self.activation, output),
        )


class Convolution(Filtering, Operator):
    """A filter moving over an NHWC image; stride and dilation are (height, width), padding is explicit."""

    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Padding = ((0, 0), (0, 0))
    activation: Activation = Activation.NONE
    # Keyword-only and without representation: they concern rounding, and file readers set them by name.
    rounded_product: bool = field(default=False, kw_only=True, repr=False)
    fine: bool = field(default=False, kw_only=True, repr=False)
    """Whether factors of int16 sums, which fit into 32 bits, have 32 bits after the point, as in ONNX networks."""

    int16_biases: ClassVar[tuple[DType, ...]]
    """The types of a bias over int16 activations."""

    def window(self, weights: Tensor) -> Window:
        """Return the window of ``weights``, whose dimensions 1 and 2 are rows and columns."""
        return Window((weights.shape[1], weights.shape[2]), self.stride, self.dilation, self.padding)

    @rules.takes(2, optional=1)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        source, weights, bias, output = convolution_tensors(inputs, outputs)
        return (
            # Ranks first, because the other checks index four dimensions. Rescalings come last, being the most
            # expensive.
            rules.first(rules.rank(tensor, 4) for tensor in (source, weights, output))
            or weighted.check(source, weights, bias, output, self.channel_axis, self.int16_biases, computed=True)
            or self._check_channels(source, weights)
            or self.window(weights).problem(source, output)
            or self._check_output(weights, output)
            or self._check_rescales(source, weights, bias, output)
            or (self._check_fine(source, weights, bias, output) if self.fine else None)
        )

    def _check_fine(self, source: Tensor, weights: Tensor, bias: Tensor | None, output: Tensor) -> str | None:
        return rules.computable(
            lambda: weighted.check_fine(weights, bias, self.channel_axis, self.rescales(source, weights, output))
        )

    @abc.abstractmethod
    def _check_channels(self, source: Tensor, weights: Tensor) -> str | None:
        """Return why the channels of ``weights`` do not fit those of ``source``."""

    def _check_output(self, weights: Tensor, output: Tensor) -> str | None:
        channels = weights.shape[self.channel_axis]
        if output.shape[3] == channels:
            return None
        return rules.WrongShape.of(output, (*output.shape[:3], channels), f"{output} should have {channels} channels")

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, weights, offset, output = convolution_tensors(inputs, outputs)
        image, filters, bias = values[0], values[1], values.optional(2)
        sums = self.sums(source, weights, output, centred(source, image), centred(weights, filters))
        rescales = self.rescales(source, weights, output)
        wide = self.sums_are_wide(source, offset)
        return (finish(sums, bias, rescales, output, self.activation, wide=wide, fine=self.fine),)

    def sums(self, source: Tensor, weights: Tensor, output: Tensor, pixels: Sums, factors: Sums) -> Sums:
        """Return the sums of the products of ``pixels`` and ``factors``, without zero points, for each output.

        ``pixels`` are [batch, height, width, channels] and ``factors`` have the shape of the weights, both in float64.
        The result is [batch, height, width, output channels], without bias.
        """
        # float64 zeros of the output's shape: pixels of the padding are never added, as they count as 0.
        sums = np.zeros(output.shape)
        # Tap by tap, each as one matrix product over the image, instead of a loop over pixels.
        for tap, write, read in self.window(weights).taps(source, output):
            sums[:, write[0], write[1]] += self._multiply(pixels[:, read[0], read[1]], factors[:, tap[0], tap[1]])
        return sums

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        """Return the number of products: one for each output and each weight of its channel."""
        _, weights, _, output = convolution_tensors(inputs, outputs)
        return output.elements * (weights.elements // weights.shape[self.channel_axis])

    @abc.abstractmethod
    def _multiply(self, pixels: Sums, factors: Sums) -> Sums:
        """Return the contribution of one tap of the filter, ``weights[:, row, column]``, to the output's pixels."""


def convolution_tensors(inputs: Inputs, outputs: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Return (input, weights, bias or ``None``, output) of a node with checked operands.

    For the arguments of ``Operator`` methods: ``check`` has accepted them, so that nothing is raised here.
    """
    source, weights = inputs[0], inputs[1]
    return source, weights, inputs.optional(2), outputs[0]
