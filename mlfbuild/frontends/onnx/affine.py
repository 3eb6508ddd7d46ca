"""Scales and zero points of QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.frontends.onnx.layout import UNSIGNED_OFFSET
from mlfbuild.graph import Array, DType, Quantization


@dataclass(frozen=True, eq=False)
class Affine:
    """real = scale * (stored - zero point), with one scale and zero point or one for each index of ``axis``."""

    scales: Array
    """float32, with zero or one dimensions."""
    zero_points: Array
    """Of the stored type, with the shape of ``scales``."""
    axis: int = 0

    @property
    def per_tensor(self) -> bool:
        """Whether there is one scale."""
        return self.scales.size == 1

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Return whether a tensor of ``shape`` has an index for each scale."""
        rank = len(shape)
        return self.per_tensor or (-rank <= self.axis < rank and shape[self.axis] == self.scales.size)

    def real(self, stored: Array) -> Array:
        """Return the real numbers that ``stored`` represents, as float32."""
        scales, zero_points = (
            self._along_axis(self.scales, stored.ndim),
            self._along_axis(self.zero_points, stored.ndim),
        )
        real: Array = (stored.astype(np.float32) - zero_points.astype(np.float32)) * scales.astype(np.float32)
        return real.astype(np.float32)

    def _along_axis(self, values: Array, rank: int) -> Array:
        if self.per_tensor:
            return values.reshape(())
        return values.reshape([-1 if axis == self.axis % rank else 1 for axis in range(rank)])

    def held(self) -> Quantization | None:
        """Return the quantisation of a tensor that holds such numbers (uint8 as int8); ``None`` if no tensor can."""
        dtype = self.zero_points.dtype
        if not self.per_tensor or dtype not in (np.int8, np.uint8, np.int16):
            return None
        scale, zero_point = float(self.scales.reshape(-1)[0]), int(self.zero_points.reshape(-1)[0])
        if not (np.isfinite(scale) and scale > 0) or (dtype == np.int16 and zero_point != 0):
            return None
        return Quantization((scale,), (zero_point - UNSIGNED_OFFSET if dtype == np.uint8 else zero_point,))

    @property
    def holder(self) -> DType:
        """The element type of a tensor that holds such numbers."""
        return DType.INT16 if self.zero_points.dtype == np.int16 else DType.INT8


@dataclass(frozen=True, eq=False)
class Quantized:
    """Constant integers, with their scale and zero point."""

    stored: Array
    affine: Affine

    @property
    def real(self) -> Array:
        """The real numbers that the integers represent, as float32."""
        return self.affine.real(self.stored)

    def symmetric(self, axis: int) -> tuple[Array, Array] | None:
        """Return int8 numbers and their scales (one, or one per index of ``axis``) if all zero points are 0.

        The zero points of uint8 numbers must be 128. ``None`` for all other numbers.
        """
        stored, affine = self.stored, self.affine
        middle = {"int8": 0, "uint8": UNSIGNED_OFFSET}.get(stored.dtype.name)
        if middle is None or (affine.zero_points != middle).any() or not _positive(affine.scales):
            return None
        if not affine.per_tensor and affine.axis % stored.ndim != axis:
            return None
        return (stored.astype(np.int16) - middle).astype(np.int8), affine.scales.reshape(-1)


def check_scales(place: str, scales: Array) -> None:
    """Raise ``UnsupportedModelError`` if one of the ``scales`` of the node at ``place`` is not positive."""
    wrong = scales[~(np.isfinite(scales) & (scales > 0))]
    if wrong.size:
        raise UnsupportedModelError(
            "scale-not-positive",
            place=place,
            reason=f"the scale {float(wrong[0]):g} is not a positive number",
            hint="quantise the model again",
        )


def _positive(scales: Array) -> bool:
    return bool((np.isfinite(scales) & (scales > 0)).all())
