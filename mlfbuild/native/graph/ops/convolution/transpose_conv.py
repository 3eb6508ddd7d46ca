"""TRANSPOSE_CONV: input NHWC, weights OHWI, optional bias [O], output NHWO larger than the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from mlfbuild.native.graph.bases import rules, weighted
from mlfbuild.native.graph.bases.accumulate import centred, finish
from mlfbuild.native.graph.bases.convolution import Filtering, convolution_tensors
from mlfbuild.native.graph.bases.window import Padding, Pair, Window
from mlfbuild.native.graph.operator import Activation, Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class TransposeConv(Filtering, Operator):
    """The transpose of a convolution: each input pixel is added, weighted, to the window of output pixels."""

    stride: Pair = (1, 1)
    padding: Padding = ((0, 0), (0, 0))
    activation: Activation = Activation.NONE
    rounded_product: bool = field(default=False, repr=False)

    name = "TRANSPOSE_CONV"
    channel_axis = 0

    def window(self, weights: Tensor) -> Window:
        """Return the window of the convolution from the output to the input."""
        return Window((weights.shape[1], weights.shape[2]), self.stride, (1, 1), self.padding)

    @rules.takes(2, optional=1)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        source, weights, bias, output = convolution_tensors(inputs, outputs)
        return (
            rules.first(rules.rank(tensor, 4) for tensor in (source, weights, output))
            or weighted.check(
                source,
                weights,
                bias,
                output,
                self.channel_axis,
                (DType.INT64, DType.INT32, DType.INT16),
                computed=True,
            )
            or self._check_channels(source, weights, output)
            # Output and input change places: the window slides over the larger image.
            or self.window(weights).problem(output, source)
            or self._check_rescales(source, weights, bias, output)
        )

    def _check_channels(self, source: Tensor, weights: Tensor, output: Tensor) -> str | None:
        if (weights.shape[3], weights.shape[0]) == (source.shape[3], output.shape[3]):
            return None
        return f"the weights {weights} do not take {source} to {output}"

    def sums_are_wide(self, source: Tensor, bias: Tensor | None) -> bool:
        """Return whether sums have 64 bits, regardless of the bias."""
        # LiteRT sums int16 in 64 bits here, whatever the bias.
        return weighted.sums_are_wide(source, None)

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        """Return the number of products: one for each input and each weight of its channel, even outside the output."""
        source, weights, _, _ = convolution_tensors(inputs, outputs)
        return source.elements * (weights.elements // weights.shape[3])

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, weights, offset, output = convolution_tensors(inputs, outputs)
        image, filters, bias = values[0], values[1], values.optional(2)
        pixels, factors = centred(source, image), centred(weights, filters)
        sums = np.zeros(output.shape)
        for tap, small, large in self.window(weights).taps(output, source):
            # The same taps as a convolution from the output to the input, with the assignment reversed.
            sums[:, large[0], large[1]] += pixels[:, small[0], small[1]] @ factors[:, tap[0], tap[1]].T
        rescales, wide = self.rescales(source, weights, output), self.sums_are_wide(source, offset)
        return (finish(sums, bias, rescales, output, self.activation, wide=wide),)
