"""AVERAGE_POOL_2D and MAX_POOL_2D: input and output NHWC, of the same scale and zero point, except in ONNX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.accumulate import finish_float
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.bases.window import Padding, Pair, Window
from mlfbuild.native.graph.half_even import HalfEvenRescale, half_even_rescale, rescale_half_even
from mlfbuild.native.graph.operator import Activation
from mlfbuild.native.graph.quantize import activation_range, integer_range
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class Pool2D(Single):
    """A window moving over an NHWC image; filter and stride are (height, width), padding is explicit."""

    filter: Pair
    stride: Pair = (1, 1)
    padding: Padding = ((0, 0), (0, 0))
    activation: Activation = Activation.NONE

    types = (DType.INT8, DType.INT16, DType.FLOAT32)

    def window(self) -> Window:
        """Return the window of this pool."""
        return Window(self.filter, self.stride, (1, 1), self.padding)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.arithmetic(source, output, types=self.types)
            or rules.rank(source, 4)
            or rules.rank(output, 4)
            or self._check_quantization(source, output)
            or self.window().problem(source, output)
            or (None if output.shape[3] == source.shape[3] else f"{output} has other channels than {source}")
            or (
                rules.computable(lambda: activation_range(self.activation, output))
                if output.dtype is not DType.FLOAT32
                else None
            )
        )

    # TFLite pools keep the scale; only ONNX networks have another one, which ``half_even`` stands for.
    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        return rules.same_quantization(source, output)


class AveragePool2D(Pool2D):
    """The mean of the elements in the window, without padding; integers are rounded half away from zero."""

    half_up: bool = field(default=False, repr=False)
    """Whether halves of stored integers are rounded up, as LiteRT does for uint8, whose values have no sign."""
    half_even: bool = field(default=False, repr=False)
    """Whether the output has its own scale, to which sums are brought with one rounding, half to even, as in ONNX."""

    name = "AVERAGE_POOL_2D"

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, output = inputs[0], outputs[0]
        image = values[0].astype(np.float64)
        # Sums and counts over the same taps, so that the padding is in neither of them.
        sums, counts = np.zeros(output.shape), self.window().counts(source, output)
        for _, write, read in self.window().taps(source, output):
            sums[:, write[0], write[1]] += image[:, read[0], read[1]]
        if output.dtype is DType.FLOAT32:
            return (finish_float(sums / counts, self.activation),)
        if self.half_even:
            return (self._rescaled(source, output, sums.astype(np.int64), counts),)
        # A half is added with the sign of the sum and C divides towards zero: half away from zero, as
        # reference/integer_ops/pooling.h. The count is that of the pixels inside the image, not of the window.
        halves = counts // 2
        if self.half_up:
            means = np.floor((sums + halves) / counts)
        else:
            means = np.trunc((sums + np.copysign(halves, sums)) / counts)
        return (np.clip(means, *activation_range(self.activation, output)).astype(output.dtype.numpy),)

    def _check_quantization(self, source: Tensor, output: Tensor) -> str | None:
        if not self.half_even or source.dtype is DType.FLOAT32:
            return super()._check_quantization(source, output)
        # The fewest and the most pixels under a window bound the factors of all counts between them.
        return rules.computable(
            lambda: self.rescale(source, output, 1), lambda: self.rescale(source, output, self.most)
        )

    @property
    def most(self) -> int:
        """The number of pixels under a window inside the image."""
        return math.prod(self.filter)

    def rescale(self, source: Tensor, output: Tensor, count: int) -> HalfEvenRescale:
        """Return the rescaling of a sum of ``count`` pixels without zero points, with ``half_even``.

        Raises ``OverflowError`` if the scales do not allow it.

        The factor is input scale divided by output scale and by ``count``; the result is for sums of at most as many
        pixels.
        """
        least, greatest = integer_range(source.dtype)
        # The greatest distance from the zero point, which bounds each pixel of the sum.
        reach = max(greatest - source.affine.zero_point, source.affine.zero_point - least)
        return half_even_rescale(source.affine.scale / output.affine.scale / count, count * reach)

    def _rescaled(self, source: Tensor, output: Tensor, sums: Array, counts: Array) -> Array:
        """Return the means of ``sums`` of stored integers; ``counts`` has the pixels under each window."""
        stored = np.zeros(output.shape, np.int64)
        # Windows at the border have fewer pixels, and each number of pixels has a factor of its own.
        for count in np.unique(counts):
            here = np.broadcast_to(counts == count, output.shape)
            real = sums[here] - count * source.affine.zero_point
            stored[here] = rescale_half_even(real, self.rescale(source, output, int(count)))
        stored += output.affine.zero_point
        return np.clip(stored, *activation_range(self.activation, output)).astype(output.dtype.numpy)


class MaxPool2D(Pool2D):
    """The greatest of the elements in the window, ignoring NaN."""

    name = "MAX_POOL_2D"

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, output = inputs[0], outputs[0]
        # -infinity is below all numbers and ignored by fmax, as NaN is; each window meets at least one pixel.
        greatest = np.full(output.shape, -np.inf)
        for _, write, read in self.window().taps(source, output):
            target = greatest[:, write[0], write[1]]
            np.fmax(target, values[0][:, read[0], read[1]], out=target)
        if output.dtype is DType.FLOAT32:
            return (finish_float(greatest, self.activation),)
        return (np.clip(greatest, *activation_range(self.activation, output)).astype(output.dtype.numpy),)
