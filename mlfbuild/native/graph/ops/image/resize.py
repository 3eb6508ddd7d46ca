"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR of NHWC images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from mlfbuild.library import round_half_away
from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

FRACTION_BITS = 10
"""Fraction bits of the interpolation weights for integers."""

_FLOAT_BITS = 24
"""The bits of a float32 number: a byte and the fraction bits of two shares must fit."""


@dataclass(frozen=True)
class ResampledLine:
    """For each row (or column) of a resized image, two of the source and the share of the second."""

    lower: Array
    upper: Array
    share: Array
    """float32, or int32 with ``FRACTION_BITS``; outside the image it can be negative or greater than 1."""


class Resize(Single):
    """An image of another height and width; the centres of pixels are at 0, 1 and so on, or at 0.5, 1.5 and so on."""

    align_corners: bool = False
    half_pixel_centers: bool = False

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.arithmetic(source, output, types=self.types)
            or rules.rank(source, 4)
            or rules.rank(output, 4)
            or rules.shape(output, (source.shape[0], *output.shape[1:3], source.shape[3]))
            or rules.same_quantization(source, output)
            or (
                "corners and half pixels exclude each other" if self.align_corners and self.half_pixel_centers else None
            )
        )

    def _spread(self, size: int, wanted: int) -> tuple[int, int]:
        """Return the two lengths, in pixels, whose ratio is the scale along a dimension."""
        return (size - 1, wanted - 1) if self.align_corners and wanted > 1 else (size, wanted)


class ResizeNearestNeighbor(Resize):
    """Every pixel is the nearest one of the source."""

    name = "RESIZE_NEAREST_NEIGHBOR"
    types = (DType.INT8, DType.INT16, DType.INT32, DType.FLOAT32)

    def positions(self, size: int, wanted: int) -> Array:
        """Return the source row, of ``size``, for each of ``wanted`` rows; computed in float32."""
        length, result = self._spread(size, wanted)
        offset = np.float32(0.5 if self.half_pixel_centers else 0)
        # In float32 and with one rounded ratio, as in reference/resize_nearest_neighbor.h: a bit decides which pixel it
        # is.
        places = (np.arange(wanted, dtype=np.float32) + offset) * (np.float32(length) / np.float32(result))
        whole: Array = round_half_away(places) if self.align_corners else np.floor(places)
        return np.clip(whole, 0, size - 1).astype(np.int32)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        image, (_, rows, columns, _) = values[0], outputs[0].shape
        picked = image[:, self.positions(image.shape[1], rows)]
        return (picked[:, :, self.positions(image.shape[2], columns)],)


class ResizeBilinear(Resize):
    """Every pixel is a weighted mean of four pixels of the source; integers are computed in fixed point."""

    half_up: bool = field(default=False, repr=False)
    """Whether halves of stored integers are rounded up, as LiteRT does for uint8, which it computes in float32."""

    name = "RESIZE_BILINEAR"
    types = (DType.INT8, DType.INT16, DType.FLOAT32)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return super()._check(source, output) or (self._check_exact(source, output) if self.half_up else None)

    def _check_exact(self, source: Tensor, output: Tensor) -> str | None:
        """Return why fixed point does not give the numbers of float32, or ``None`` if both are exact."""
        bits = [self._share_bits(*lengths) for lengths in zip(source.shape[1:3], output.shape[1:3], strict=True)]
        # A byte times two shares is exact in the 24 bits of a float32 only up to here.
        if None not in bits and sum(filter(None, bits)) <= _FLOAT_BITS - 8:
            return None
        return (
            f"the reference computes uint8 images in float32, which is exact only if sizes differ by a power of two; "
            f"those of {source} and {output} do not"
        )

    def _share_bits(self, size: int, wanted: int) -> int | None:
        """Return the fraction bits that all shares of a line need; ``None`` if ``FRACTION_BITS`` are not enough."""
        length, result = self._spread(size, wanted)
        one = 1 << FRACTION_BITS
        step, rest = divmod(one * length, result)
        if rest or (self.half_pixel_centers and step % 2):
            return None
        # The lowest bit of any share, as the or of all of them shows it.
        shares = int(np.bitwise_or.reduce(self.line(size, wanted, DType.INT8).share, initial=one))
        return FRACTION_BITS - ((shares & -shares).bit_length() - 1)

    def line(self, size: int, wanted: int, dtype: DType) -> ResampledLine:
        """Return the source rows, of ``size``, for ``wanted`` rows.

        Both lines of source rows are clamped to the image. Shares are float32, or int32 with ``FRACTION_BITS`` for
        integer types, with LiteRT's fixed-point steps.
        """
        length, result = self._spread(size, wanted)
        if dtype is DType.FLOAT32:
            scale, places = np.float32(length) / np.float32(result), np.arange(wanted, dtype=np.float32)
            half = np.float32(0.5)
            places = (places + half) * scale - half if self.half_pixel_centers else places * scale
            lower = np.clip(np.floor(places), 0, size - 1)
            return ResampledLine(lower, np.minimum(np.ceil(places), size - 1), (places - lower).astype(np.float32))
        one = 1 << FRACTION_BITS
        # The scale is rounded to nearest, as in reference/resize_bilinear.h of LiteRT.
        step = (one * length + result // 2) // result
        points = np.arange(wanted, dtype=np.int64) * step
        if self.half_pixel_centers:
            points = points + step // 2 - one // 2
        # C's division truncates, which makes a difference before the first pixel; none is read beyond the last one.
        lower = np.clip(points // one, 0, size - 1)
        upper = np.clip((points + one - 1) // one, 0, size - 1)
        return ResampledLine(lower, upper, (points - one * lower).astype(np.int32))

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        image, output = values[0], outputs[0]
        rows = self.line(image.shape[1], output.shape[1], output.dtype)
        columns = self.line(image.shape[2], output.shape[2], output.dtype)
        one = 1 if output.dtype is DType.FLOAT32 else 1 << FRACTION_BITS
        wide = image.astype(np.float64)  # exact for integers
        across = rows.share.astype(np.float64).reshape(-1, 1, 1)
        # Rows first, then columns; both orders are exact for integers.
        mixed = wide[:, rows.lower.astype(int)] * (one - across) + wide[:, rows.upper.astype(int)] * across
        along = columns.share.astype(np.float64).reshape(-1, 1)
        left, right = mixed[:, :, columns.lower.astype(int)], mixed[:, :, columns.upper.astype(int)]
        result = left * (one - along) + right * along
        if output.dtype is DType.FLOAT32:
            return (result.astype(np.float32),)
        # Both shares have FRACTION_BITS, so that the product has twice as many.
        exact = result / (one * one)
        rounded = np.floor(exact + 0.5) if self.half_up else round_half_away(exact)
        return (rounded.astype(output.dtype.numpy),)
