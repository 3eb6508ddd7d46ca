"""Scales and zero points of QuantizeLinear and DequantizeLinear, and the constants of a model.

Quantised weights stay in the form that the file stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.onnx.layout import UNSIGNED_OFFSET
from mlfbuild.native.graph import Array, DType, Quantization

_INT16 = np.iinfo(np.int16)

_HOLDERS = {
    np.dtype(np.int8): DType.INT8,
    np.dtype(np.uint8): DType.INT8,
    np.dtype(np.int16): DType.INT16,
    np.dtype(np.uint16): DType.INT16,
}
"""The element types of tensors that hold quantised numbers, by ONNX's types."""


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
        """Return whether a tensor of ``shape`` has an index for each scale.

        ``shape`` is the shape of the stored numbers.
        """
        rank = len(shape)
        return self.per_tensor or (-rank <= self.axis < rank and shape[self.axis] == self.scales.size)

    def real(self, stored: Array) -> Array:
        """Return the real numbers that ``stored`` represents, as float32.

        The axis of the scales is that of ``stored``, whose shape the scales must fit. Computed in float32, as ONNX
        defines DequantizeLinear.
        """
        scales, zero_points = (self._along_axis(values, stored.ndim) for values in (self.scales, self.zero_points))
        # In float32, as ONNX defines DequantizeLinear.
        real: Array = (stored.astype(np.float32) - zero_points.astype(np.float32)) * scales.astype(np.float32)
        return real.astype(np.float32)

    def _along_axis(self, values: Array, rank: int) -> Array:
        if self.per_tensor:
            return values.reshape(())
        return values.reshape([-1 if axis == self.axis % rank else 1 for axis in range(rank)])

    def held(self) -> Quantization | None:
        """Return the quantisation of a tensor that holds such numbers; ``None`` if no tensor can.

        uint8 is held as int8, lower by 128. int16 and uint16 are held as int16 with zero point 0, as kernels require.
        If theirs is not in the middle, the scale is larger, up to twice, so that the range fits; ``limit`` is the other
        end of the range.
        """
        dtype = self.zero_points.dtype
        if not self.per_tensor or dtype not in _HOLDERS:
            return None
        scale, zero_point = float(self.scales.reshape(-1)[0]), int(self.zero_points.reshape(-1)[0])
        if not (np.isfinite(scale) and scale > 0):
            return None
        if self.holder is DType.INT16:
            # int16 kernels have no zero point: the scale grows so that the farther end of the range fits.
            return Quantization((float(np.float32(scale * self._stretch)),), (0,))
        return Quantization((scale,), (zero_point - UNSIGNED_OFFSET if dtype == np.uint8 else zero_point,))

    @property
    def holder(self) -> DType:
        """The element type of a tensor that holds such numbers."""
        return _HOLDERS.get(self.zero_points.dtype, DType.INT8)

    @property
    def centred(self) -> bool:
        """Whether the zero points are in the middle of the range."""
        limits = np.iinfo(self.zero_points.dtype)
        return bool((self.zero_points.astype(np.int64) == (limits.min + limits.max + 1) // 2).all())

    @property
    def _reach(self) -> tuple[int, int]:
        """The least and the greatest difference of a stored number and the zero point."""
        limits, zero_point = np.iinfo(self.zero_points.dtype), int(self.zero_points.reshape(-1)[0])
        return int(limits.min) - zero_point, int(limits.max) - zero_point

    @property
    def _stretch(self) -> float:
        """The scale of an int16 tensor that holds such 16-bit numbers, relative to theirs."""
        low, high = self._reach
        # int16 kernels have no zero point, so the farther end of the range determines the scale.
        return max(1.0, low / _INT16.min, high / _INT16.max)

    def limit(self) -> tuple[int | None, int | None]:
        """Return the least and the greatest number of an int16 tensor that holds these numbers, if it has others.

        ``None`` stands for an end that the type itself has. Both are ``None`` for int8 and for centred int16.
        """
        if self.holder is not DType.INT16 or self.centred:
            return None, None
        low, high = (round(end / self._stretch) for end in self._reach)
        # One end is inside the range of int16, and only that one must be clamped.
        return (low, None) if low > _INT16.min + 1 else (None, high)

    @property
    def declared(self) -> DType:
        """The type of values that are quantised like this; uint16, which no tensor has, counts as int16."""
        name = self.zero_points.dtype.name
        return DType.INT16 if name == "uint16" else DType(name)

    @property
    def exact(self) -> bool:
        """Whether a tensor with the quantisation ``held`` has the same integers, apart from an offset of uint8."""
        return self.zero_points.dtype != np.uint16 and (self.holder is DType.INT8 or self.centred)


@dataclass(frozen=True, eq=False)
class Quantized:
    """Constant integers, with their scale and zero point."""

    stored: Array
    affine: Affine

    @property
    def real(self) -> Array:
        """The real numbers that the integers represent, as float32."""
        return self.affine.real(self.stored)

    def held(self) -> tuple[Array, Quantization] | None:
        """Return the elements and the quantisation of a tensor that holds these numbers; ``None`` if no tensor can."""
        quantization = self.affine.held()
        if quantization is None or self.stored.dtype != self.affine.zero_points.dtype:
            return None
        differences = self.stored.astype(np.int64) - self.affine.zero_points.astype(np.int64).reshape(-1)[0]
        if self.affine.holder is DType.INT8:
            return (differences + quantization.zero_point).astype(np.int8), quantization
        if np.abs(differences).max(initial=0) <= _INT16.max:
            # Without the stretched scale: weights rarely use the end of the range, and keep their own integers then.
            scale = float(self.affine.scales.reshape(-1)[0])
            return differences.astype(np.int16), replace(quantization, scales=(scale,))
        # Half to even, like QuantizeLinear.
        rounded = np.rint(self.real.astype(np.float64) / quantization.scale)
        return np.clip(rounded, _INT16.min, _INT16.max).astype(np.int16), quantization

    def differences(self, axis: int) -> tuple[Array, Array] | None:
        """Return 8-bit numbers without zero points, as int16, and their scales: one, or one per index of ``axis``.

        ``None`` for numbers of other types.

        ``axis`` is the dimension of the output channels. The differences are from -255 to 255.
        """
        stored, affine = self.stored, self.affine
        if stored.dtype not in (np.int8, np.uint8) or _not_positive(affine.scales).size:
            return None
        # The axis of the scales must be the one that the layer has its output channels on.
        if not affine.per_tensor and affine.axis % stored.ndim != axis:
            return None
        spread = [-1 if other == axis and not affine.per_tensor else 1 for other in range(stored.ndim)]
        zero_points = affine.zero_points.astype(np.int16).reshape(spread)
        return stored.astype(np.int16) - zero_points, affine.scales.reshape(-1)


def check_scales(place: str, scales: Array) -> None:
    """Raise ``UnsupportedModelError`` if one of the ``scales`` of the node at ``place`` is not positive.

    NaN and infinity are not positive either. The error names the first such scale; ``place`` is that of the node.
    """
    if (wrong := _not_positive(scales)).size:
        raise UnsupportedModelError(
            "scale-not-positive",
            place=place,
            reason=f"the scale {float(wrong[0]):g} is not a positive number",
            hint="quantise the model again",
        )


def _not_positive(scales: Array) -> Array:
    return scales[~(np.isfinite(scales) & (scales > 0))]


class Constants:
    """Arrays by name; quantised arrays are converted to real numbers only on request."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = dict(arrays)
        self._quantized: dict[str, Quantized] = {}

    def add(self, name: str, data: Array) -> None:
        """Add the constant ``name``."""
        self._arrays[name] = data

    def add_quantized(self, name: str, data: Quantized) -> None:
        """Add the constant ``name``, the real numbers that ``data`` represents."""
        self._quantized[name] = data

    def __contains__(self, name: str) -> bool:
        return name in self._arrays or name in self._quantized

    def get(self, name: str) -> Array | None:
        """Return the elements of ``name`` in ONNX's type, ``None`` if it is not constant.

        Quantised constants are dequantised at each call; use ``quantized`` for their integers and ``shape`` for their
        shape.
        """
        found = self._quantized.get(name)
        return self._arrays.get(name) if found is None else found.real

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of ``name``, ``None`` if it is not constant."""
        quantized, array = self._quantized.get(name), self._arrays.get(name)
        if quantized is not None:
            return quantized.stored.shape
        return None if array is None else array.shape

    def quantized(self, name: str) -> Quantized | None:
        """Return the quantised form of ``name``, ``None`` if it has none."""
        return self._quantized.get(name)
