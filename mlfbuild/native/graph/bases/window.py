"""Windows that slide over the height and width of NHWC images, for convolutions and pools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mlfbuild.native.graph.bases.rules import WrongShape
from mlfbuild.native.graph.tensors import Array, Tensor

Pair = tuple[int, int]
"""(height, width)"""

Padding = tuple[Pair, Pair]
"""((top, bottom), (left, right)), in rows and columns"""


@dataclass(frozen=True)
class Window:
    """The size, stride, dilation and padding of a filter; all pairs are (height, width).

    Images are NHWC, and padding is explicit: SAME and VALID of the file are already ((top, bottom), (left, right)). The
    output has ``(size + padding - reach) // stride + 1`` rows, where ``reach`` is ``(filter - 1) * dilation + 1``: for
    224 rows, a filter of 3, stride 2 and padding (0, 1), these are (225 - 3) // 2 + 1 = 112.
    """

    filter: Pair
    stride: Pair
    dilation: Pair
    padding: Padding

    @property
    def reach(self) -> Pair:
        """The rows and columns from the first element under the filter to the last one."""
        height, width = ((size - 1) * step + 1 for size, step in zip(self.filter, self.dilation, strict=True))
        return height, width

    def problem(self, source: Tensor, output: Tensor) -> str | None:
        """Return why the window does not produce the image ``output`` from ``source`` (both NHWC), or ``None``.

        Also checks the attributes: sizes of at least 1, and padding that is narrower than the reach. Wrong shapes are
        returned as ``WrongShape``, a string that also has the right shape.
        """
        if min(*self.filter, *self.stride, *self.dilation) < 1:
            return f"filter {self.filter}, stride {self.stride} and dilation {self.dilation} must be at least 1"
        if min(*self.padding[0], *self.padding[1]) < 0:
            return f"padding {self.padding} must not be negative"
        # The batch of the output is not computed from the window, so that a wrong one gets a message of its own.
        wanted = [source.shape[0], *output.shape[1:]]
        for axis in (0, 1):
            reach = self.reach[axis]
            # A tap that only ever meets padding is useless, and the kernels' bounds assume that each window meets the
            # image.
            if max(self.padding[axis]) >= reach:
                return f"padding {self.padding} is wider than the filter {self.filter}"
            padded = source.shape[1 + axis] + sum(self.padding[axis])
            if padded < reach:
                return f"{output} does not fit a filter of {self.filter} moving over {source}"
            wanted[1 + axis] = (padded - reach) // self.stride[axis] + 1
        if output.shape[0] != source.shape[0]:
            return WrongShape.of(output, wanted, f"{output} has another batch than {source}")
        if output.shape != tuple(wanted):
            return WrongShape.of(
                output, wanted, f"{output} does not fit a filter of {self.filter} moving over {source}"
            )
        return None

    def taps(self, source: Tensor, output: Tensor) -> Iterator[tuple[Pair, tuple[slice, slice], tuple[slice, slice]]]:
        """Yield each (filter row, filter column) that overlaps the image, and the slices that it writes and reads.

        The slices are (rows, columns) of the output and of the input: ``output[where] += input[what] * filter[tap]``.
        Positions in the padding are omitted, so that no padded copy is needed.
        """
        for row, written_rows, read_rows in self._axis_taps(0, source.shape[1], output.shape[1]):
            for column, written_columns, read_columns in self._axis_taps(1, source.shape[2], output.shape[2]):
                yield (row, column), (written_rows, written_columns), (read_rows, read_columns)

    def counts(self, source: Tensor, output: Tensor) -> Array:
        """Return the number of pixels of the image under each position of the window, int64 [height, width, 1].

        For average pools, whose divisor leaves out the padding.
        """
        counts = np.zeros((*output.shape[1:3], 1), np.int64)
        for _, write, _ in self.taps(source, output):
            counts[write] += 1
        return counts

    def _axis_taps(self, axis: int, source: int, output: int) -> Iterator[tuple[int, slice, slice]]:
        stride, dilation, before = self.stride[axis], self.dilation[axis], self.padding[axis][0]
        # Files may declare filters and paddings of 2**29: only taps that meet the image for some output are visited.
        # The first tap that the last position can bring into the image; smaller ones lie above it everywhere.
        first = max(0, -(((output - 1) * stride - before) // dilation))
        for tap in range(first, min(self.filter[axis], (before + source - 1) // dilation + 1)):
            offset = tap * dilation - before
            # Rounding towards minus infinity twice gives the first position whose pixel is not negative.
            low = max(0, -(offset // stride))
            high = min(output, (source - 1 - offset) // stride + 1)
            if low < high:
                start = low * stride + offset
                yield tap, slice(low, high), slice(start, start + (high - low - 1) * stride + 1, stride)


def output_size(size: int, filter_size: int, stride: int, dilation: int, *, same: bool) -> int:
    """Return the number of positions of a filter along a dimension of ``size`` (TFLite's SAME or VALID), at least 0.

    SAME rounds the quotient of size and stride up, whatever the filter is. VALID counts positions at which the whole
    filter, with its dilation, is inside.
    """
    if same:
        # SAME of TFLite: the quotient rounded up, whatever the filter.
        return -(-size // stride)
    # VALID: only positions where the whole filter is inside.
    return max(0, (size - (filter_size - 1) * dilation - 1) // stride + 1)


def resolve_padding(size: int, filter_size: int, stride: int, dilation: int, *, same: bool) -> Pair:
    """Return (before, after) along a dimension of ``size`` for TFLite's SAME or VALID; an odd pixel goes after.

    All arguments are in elements along that dimension. VALID has no padding.
    """
    positions = output_size(size, filter_size, stride, dilation, same=same)
    # ComputePaddingWithOffset of TensorFlow Lite; the offset is the odd pixel.
    total = max(0, (positions - 1) * stride + (filter_size - 1) * dilation + 1 - size) if same else 0
    return total // 2, total - total // 2
