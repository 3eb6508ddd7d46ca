"""GRID_SAMPLE, ROI_ALIGN and DEFORM_CONV: images that are read between their pixels, at computed positions.

Positions that are not a number, which ONNX's evaluator refuses, are outside of the image; docs/onnx.md has all such
cases.
"""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

FARTHEST = float(1 << 24)
"""Positions are bounded by this number: beyond it, float32 has no pixels one apart."""


_LARGEST = (1 << 13) - 1
"""Rows and columns of an image with boxes: C counts the samples of a box, up to 16 per pixel, in 32 bits."""


class Interpolation(enum.Enum):
    """The interpolation between pixels; the value is the number of pixels in each dimension."""

    NEAREST = 1
    LINEAR = 2
    CUBIC = 4


class Outside(enum.Enum):
    """The pixels outside of an image."""

    ZEROS = 0
    BORDER = 1
    REFLECTION = 2


class GridSample(Operator):
    """An image [batch, up to 3 sizes, channels] at the positions [batch, as many sizes, numbers] of the second input.

    The numbers are from -1 to 1, the last dimension first; with ``corners``, -1 and 1 are the centres of the outermost
    pixels, otherwise their edges.

    The result is [batch, as many sizes, channels]: for each position the mixed pixels around it. ``outside`` decides
    what a pixel beyond the image is.
    """

    interpolation: Interpolation
    outside: Outside
    corners: bool

    name = "GRID_SAMPLE"
    types = (DType.FLOAT32,)

    @rules.takes(2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        (source, grid), output = inputs, outputs[0]
        dimensions = len(source.shape) - 2
        return (
            rules.arithmetic(source, grid, output, types=self.types)
            or rules.within("the number of dimensions of an image", dimensions, 1, 3)
            or rules.rank(grid, dimensions + 2)
            or rules.shape(grid, (source.shape[0], *grid.shape[1:-1], dimensions))
            or rules.shape(output, (*grid.shape[:-1], source.shape[-1]))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, grid = values
        sizes = source.shape[1:-1]
        # The order of the numbers is that of ONNX's grid: x before y, so that the last axis of the image comes first.
        lines = [self._taps(grid[..., -1 - axis], size) for axis, size in enumerate(sizes)]
        batch = np.arange(len(source)).reshape(-1, *(1 for _ in sizes))
        total = np.zeros(outputs[0].shape)
        # Two taps per dimension if linear, four if cubic: all products of shares, up to 64.
        for taps in itertools.product(*lines):
            places = [place for place, _ in taps]
            inside = np.logical_and.reduce([place >= 0 for place in places])[..., np.newaxis]
            # -1 would read the last pixel, so that any valid index takes its place and the share is dropped.
            index = (batch, *(np.maximum(place, 0) for place in places))
            pixels = source[index].astype(np.float64)
            share = math.prod((share for _, share in taps), start=np.ones(()))[..., np.newaxis]
            total += np.where(inside, pixels * share, 0)
        return (total.astype(np.float32),)

    def _taps(self, numbers: Array, size: int) -> list[tuple[Array, Array]]:
        """Return the position of each pixel, -1 if it is outside and zero, and its share."""
        one, half = np.float32(1), np.float32(0.5)
        if self.corners:
            # In float32, like the runtimes: for NEAREST, one bit decides which pixel it is.
            at = (numbers + one) * half * np.float32(size - 1)
        else:
            # Edges of pixels: -1 is the left edge of the first pixel, half a pixel before its centre.
            at = ((numbers + one) * np.float32(size) - one) * half
        if self.interpolation is Interpolation.NEAREST:
            # Half to even, as in ONNX's GridSample.
            at = np.rint(at)
        at = self._bounded(at.astype(np.float64), size)
        first = np.floor(at).astype(np.int64)
        if self.interpolation is Interpolation.NEAREST:
            return [(self._padded(first, size), np.ones(()))]
        rest = at - first
        if self.interpolation is Interpolation.LINEAR:
            shares = [1 - rest, rest]
            return [(self._padded(first + tap, size), share) for tap, share in enumerate(shares)]
        # One pixel before and two after, the support of Keys' function with a radius of 2.
        return [(self._padded(first + tap, size), _cubic(np.abs(rest - tap))) for tap in (-1, 0, 1, 2)]

    def _bounded(self, at: Array, size: int) -> Array:
        if self.outside is Outside.BORDER:  # like ONNX's evaluator, only beyond the edges; it matters if cubic
            least, greatest = self._edges(size)
            return np.where((at >= least) & (at <= greatest), at, np.clip(np.nan_to_num(at, nan=0), 0, size - 1))
        # Positions become integers in C, where numbers that do not fit are undefined.
        at = np.clip(np.nan_to_num(at, nan=-FARTHEST, posinf=FARTHEST, neginf=-FARTHEST), -FARTHEST, FARTHEST)
        return self._reflected(at, size) if self.outside is Outside.REFLECTION else at

    def _edges(self, size: int) -> tuple[float, float]:
        return (0.0, size - 1.0) if self.corners else (-0.5, size - 0.5)

    def _padded(self, places: Array, size: int) -> Array:
        if self.outside is Outside.ZEROS:
            return np.where((places >= 0) & (places < size), places, -1)
        if self.outside is Outside.REFLECTION:
            # Again, because taps beside a reflected position can lie outside of the image.
            places = np.trunc(self._reflected(places.astype(np.float64), size)).astype(np.int64)
        return np.clip(places, 0, size - 1)

    def _reflected(self, at: Array, size: int) -> Array:
        least, greatest = self._edges(size)
        span = greatest - least
        # An image of one pixel, whose two edges are one place with ``corners``: everything is reflected onto it.
        if span == 0:
            return np.zeros_like(at)
        below = at < least
        beyond = np.where(below, least - at, at - greatest)
        turns = np.floor(beyond / span)
        rest = beyond - turns * span
        # Reflections at both ends alternate, so that an odd number of turns starts from the other end.
        from_least = below == (turns % 2 == 0)
        return np.where(beyond > 0, np.where(from_least, least + rest, greatest - rest), at)


def _cubic(distance: Array) -> Array:
    """Return the share of a pixel by Keys' cubic convolution with the parameter -0.75."""
    near = (1.25 * distance - 2.25) * distance * distance + 1
    # The parameter -0.75 is ONNX's for GridSample, and that of PyTorch.
    far = ((-0.75 * distance + 3.75) * distance - 6) * distance + 3
    return np.where(distance <= 1, near, far)


class RoiAlign(Operator):
    """The boxes [count, 4] of images, each as an image of ``size``, from samples between the pixels.

    Inputs: images [batch, height, width, channels], boxes (left, top, right, bottom), and the image of each box, int64.
    Each pixel is the average of ``samples`` by ``samples`` numbers, or as many as it has pixels of the image in each
    direction if that is 0. With ``greatest``, it is the greatest product of a pixel and its share, as in ONNX.

    ONNX's RoiAlign. A box whose image does not exist is all zeros. Boxes are data, so that the number of samples has a
    limit (``most_samples``).
    """

    size: tuple[int, int]
    samples: int
    scale: float
    """Pixels of the image per unit of a box."""
    half_pixel: bool
    """Whether the centre of the first pixel is at half a unit; if not, boxes have at least one pixel."""
    greatest: bool

    name = "ROI_ALIGN"
    types = (DType.FLOAT32,)

    @rules.takes(3)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        (source, boxes, images), output = inputs, outputs[0]
        return (
            rules.arithmetic(source, boxes, output, types=self.types)
            or rules.typed(images, DType.INT64)
            or rules.rank(source, 4)
            or rules.rank(images, 1)
            or rules.shape(boxes, (*images.shape, 4))
            or rules.within("the number of samples", self.samples, 0, 1 << 10)
            or rules.first(rules.within("the size of an image", size, 1, _LARGEST) for size in source.shape[1:3])
            or (None if math.isfinite(self.scale) else f"the scale is {self.scale}")
            or rules.shape(output, (*images.shape, *self.size, source.shape[3]))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, boxes, images = values
        made = np.zeros(outputs[0].shape, np.float32)
        for box, image, result in zip(boxes, images.tolist(), made, strict=True):
            # A position outside of the batch is data, and must not become an address.
            if 0 <= image < len(source):
                rows = self._lines(box[1], box[3], self.size[0], source.shape[1])
                columns = self._lines(box[0], box[2], self.size[1], source.shape[2])
                for row, column in itertools.product(range(self.size[0]), range(self.size[1])):
                    result[row, column] = self._pooled(source[image].astype(np.float64), rows[row], columns[column])
        return (made,)

    def _lines(self, begin: np.float32, end: np.float32, size: int, pixels: int) -> list[Array]:
        """Return the positions of the samples of each of ``size`` pixels."""
        first = np.float32(begin * np.float32(self.scale) - np.float32(0.5 * self.half_pixel))
        width = np.float32(end * np.float32(self.scale) - np.float32(0.5 * self.half_pixel)) - first
        # Half pixels are the corrected form of opset 16, in which a box may be narrower than a pixel.
        width = width if self.half_pixel else max(width, np.float32(1))
        step = np.float32(width) / np.float32(size)
        limit = self.most_samples(pixels)
        # The maximum on the right also bounds NaN.
        # A box is data: without a limit, a damaged one would take forever.
        count = self.samples or int(max(0, min(limit, np.ceil(step) if step == step else 0)))
        at = first.astype(np.float64)
        # The centres of equal parts of a pixel, as many as there are samples.
        return [at + (pixel + (np.arange(count) + 0.5) / max(count, 1)) * step for pixel in range(size)]

    def most_samples(self, pixels: int) -> int:
        """Return the most samples along a line of ``pixels`` if their number depends on a box."""
        return 4 * pixels + 4

    def _pooled(self, image: Array, rows: Array, columns: Array) -> Array:
        total = np.zeros(image.shape[2])
        found = None
        for y, x in itertools.product(rows, columns):
            (top, bottom, low), (left, right, near) = _corners(y, image.shape[0]), _corners(x, image.shape[1])
            shares = [(1 - low) * (1 - near), (1 - low) * near, low * (1 - near), low * near]
            pixels = [image[top, left], image[top, right], image[bottom, left], image[bottom, right]]
            # A sample up to one pixel outside takes the nearest pixel, one beyond that counts as 0, as in ONNX.
            if not (-1 <= y <= image.shape[0] and -1 <= x <= image.shape[1]):
                parts = np.zeros((4, image.shape[2]))
            else:
                parts = np.stack([pixel * share for pixel, share in zip(pixels, shares, strict=True)])
            total += parts.sum(axis=0)
            best = parts.max(axis=0)
            found = best if found is None else np.maximum(found, best)
        # ONNX takes the greatest of the weighted corners, not of the interpolated samples.
        if self.greatest:
            return total if found is None else found
        # Zeros are also samples: the divisor is the same for all boxes of a size.
        return total / max(len(rows) * len(columns), 1)


def _corners(at: float, size: int) -> tuple[int, int, float]:
    """Return the two pixels around a position and the share of the second."""
    # NaN is at the first pixel: the caller counts such samples as zeros.
    at = max(0.0, min(at, size - 1.0)) if at == at else 0.0
    first = int(at)
    return first, min(first + 1, size - 1), at - first


class DeformConv(Operator):
    """A convolution whose every weight has an offset (row, column) to the pixel that it multiplies.

    Inputs: images [batch, height, width, channels]; the filter [rows, columns, channels of a group, outputs]; offsets
    [batch, height, width, offset groups * rows * columns * 2]; a bias; and a mask, optional, that pixels are multiplied
    by, [batch, height, width, offset groups * rows * columns].
    """

    stride: tuple[int, int]
    dilation: tuple[int, int]
    before: tuple[int, int]
    """The rows above the image and the columns to the left, which are zeros."""
    groups: int
    offset_groups: int

    name = "DEFORM_CONV"
    types = (DType.FLOAT32,)

    @rules.takes(4, optional=1)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        source, filters, offsets, bias = inputs[:4]
        mask, output = inputs.optional(4), outputs[0]
        tensors = [source, filters, offsets, bias, output, *([] if mask is None else [mask])]
        reason = rules.arithmetic(*tensors, types=self.types) or rules.first(
            rules.rank(tensor, 4) for tensor in (source, filters, output)
        )
        if reason is not None:
            return reason
        rows, columns, depth, channels = filters.shape
        taps, place = self.offset_groups * rows * columns, output.shape[:3]
        # Groups and groups of offsets divide the channels independently of each other.
        if depth * self.groups != source.shape[3] or channels % self.groups or source.shape[3] % self.offset_groups:
            return f"{self.groups} groups and {self.offset_groups} groups of offsets do not fit {source} and {filters}"
        return (
            rules.shape(offsets, (*place, taps * 2))
            or rules.shape(bias, (channels,))
            or rules.first(rules.within("an attribute", size, 0, 1 << 24) for size in self._sizes())
            or (None if mask is None else rules.shape(mask, (*place, taps)))
            or rules.shape(output, (source.shape[0], *place[1:], channels))
        )

    def _sizes(self) -> Sequence[int]:
        return (*self.stride, *self.dilation, *self.before)

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        return outputs[0].elements * math.prod(inputs[1].shape[:3])

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, filters, offsets, bias = (np.asarray(value, np.float64) for value in values[:4])
        mask = values[4] if len(values) > 4 else None
        rows, columns, depth, channels = filters.shape
        batch, height, width = outputs[0].shape[:3]
        moves = offsets.reshape(batch, height, width, self.offset_groups, rows, columns, 2)
        shares = np.ones(moves.shape[:-1]) if mask is None else mask.astype(np.float64).reshape(moves.shape[:-1])
        # The bias comes first; sums are in double, so that the order does not matter.
        total = np.zeros(outputs[0].shape) + bias
        outs = channels // self.groups
        down, right = (np.arange(size) * step for size, step in zip((height, width), self.stride, strict=True))
        for row, column, channel in itertools.product(range(rows), range(columns), range(source.shape[3])):
            # Neighbouring channels share a group of offsets, which need not have the size of a group of the filter.
            group, own = channel // depth, channel * self.offset_groups // source.shape[3]
            y = moves[:, :, :, own, row, column, 0] + (down - self.before[0] + row * self.dilation[0])[:, np.newaxis]
            x = moves[:, :, :, own, row, column, 1] + (right - self.before[1] + column * self.dilation[1])
            pixels = _between(source[..., channel], y, x) * shares[:, :, :, own, row, column]
            part = slice(group * outs, group * outs + outs)
            total[..., part] += pixels[..., np.newaxis] * filters[row, column, channel % depth, part]
        return (total.astype(np.float32),)


def _between(images: Array, y: Array, x: Array) -> Array:
    """Return ``images`` [batch, height, width] at positions [batch, ...], with zeros outside."""
    batch = np.arange(len(images)).reshape(-1, *(1 for _ in y.shape[1:]))
    total = np.zeros(y.shape)
    # Bounded before they become integers: an offset is data and can be anything.
    y, x = (np.clip(np.nan_to_num(at, nan=-FARTHEST), -FARTHEST, FARTHEST) for at in (y, x))
    top, left = np.floor(y).astype(np.int64), np.floor(x).astype(np.int64)
    for below, beside in itertools.product((0, 1), (0, 1)):
        rows, columns = top + below, left + beside
        inside = (rows >= 0) & (rows < images.shape[1]) & (columns >= 0) & (columns < images.shape[2])
        share = np.abs(1 - below - (y - top)) * np.abs(1 - beside - (x - left))
        pixels = images[batch, np.where(inside, rows, 0), np.where(inside, columns, 0)]
        total += np.where(inside, pixels * share, 0)
    return total
