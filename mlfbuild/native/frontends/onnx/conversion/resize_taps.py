"""Interpolation of a Resize along one dimension: the source elements of each result element, and their shares.

The formulas are those of ONNX's Resize: https://onnx.ai/onnx/operators/onnx__Resize.html
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Array

Numbers = npt.NDArray[np.float64]

_WHOLE = 1e-9
"""Tolerance for the rounding error of a division in double."""


@dataclass(frozen=True)
class Spacing:
    """The number of elements along a dimension before and after a Resize."""

    size: int
    wanted: int
    scale: float
    """Elements of the result per element of the source, before the size was rounded to ``wanted``."""


@dataclass(frozen=True, eq=False)
class Taps:
    """Element i of the result is the sum over j of ``shares[j, i]`` times the element at ``positions[j, i]``."""

    positions: Array
    """int64 [taps, wanted]"""
    shares: Numbers
    """[taps, wanted]"""


def coordinates(spacing: Spacing, mode: str, roi: tuple[float, float]) -> Numbers:
    """Return the source coordinates of the result's elements; raises ``ValueError`` for an unknown ``mode``.

    ``mode`` is the attribute coordinate_transformation_mode, ``roi`` begin and end as fractions of the dimension. The
    result is float64 [wanted] and may lie outside of the source.
    """
    place = np.arange(spacing.wanted, dtype=np.float64)
    # The width is not rounded: the formulas of ONNX use the scale, not the size of the result.
    size, width = spacing.size, spacing.scale * spacing.size
    halves = (place + 0.5) / spacing.scale - 0.5
    if mode == "half_pixel":
        return halves
    if mode == "pytorch_half_pixel":
        return halves if width > 1 else np.full_like(place, -0.5)
    if mode == "half_pixel_symmetric":
        return size / 2 * (1 - spacing.wanted / width) + halves
    if mode == "asymmetric":
        return place / spacing.scale
    if mode == "align_corners":
        # A result of one element would divide by 0; ONNX takes the first element then.
        return place * ((size - 1) / (width - 1)) if width != 1 else np.zeros_like(place)
    if mode == "tf_crop_and_resize":
        begin, end = roi
        if width == 1:
            return np.full_like(place, (begin + end) * (size - 1) / 2)
        return begin * (size - 1) + place * (end - begin) * (size - 1) / (width - 1)
    raise ValueError(f"attribute coordinate_transformation_mode is {mode!r}")


def nearest(places: Numbers, size: int, mode: str) -> Array:
    """Return the positions of the elements nearest to ``places``; raises ``ValueError`` for an unknown ``mode``."""
    rounded = np.rint(places)
    # A place that should be 2 is perhaps 1.9999999999999998, which "floor" would make 1.
    places = np.where(np.abs(places - rounded) < _WHOLE, rounded, places)
    known = {
        "floor": np.floor(places),
        "ceil": np.ceil(places),
        # A tie goes to the lower element: ceil(x - 0.5) of 1.5 is 1.
        "round_prefer_floor": np.ceil(places - 0.5),
        "round_prefer_ceil": np.floor(places + 0.5),
    }
    if mode not in known:
        raise ValueError(f"attribute nearest_mode is {mode!r}")
    return np.clip(known[mode], 0, size - 1).astype(np.int64)


def _linear(distance: Numbers) -> Numbers:
    return np.asarray(np.clip(1 - np.abs(distance), 0, 1))


def _cubic(distance: Numbers, a: float) -> Numbers:
    """Return the share of an element at ``distance`` (Keys' cubic convolution with the parameter ``a``)."""
    x = np.abs(distance)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def interpolation(
    places: Numbers, spacing: Spacing, cubic: float | None, *, antialias: bool, exclude_outside: bool
) -> Taps:
    """Return the taps of a linear interpolation, or of a cubic one with the parameter ``cubic``."""
    radius = 1 if cubic is None else 2
    # Antialiasing widens the filter where the image shrinks, so that every element counts.
    stretch = min(spacing.scale, 1.0) if antialias else 1.0
    reach = math.ceil(radius / stretch)
    offsets = np.arange(-reach, reach + 1)[:, np.newaxis]
    # The taps around a place, from ``reach`` before to ``reach`` after its floor.
    positions = np.floor(places).astype(np.int64)[np.newaxis] + offsets
    distances = (positions - places) * stretch
    shares = _linear(distances) if cubic is None else _cubic(distances, cubic)
    if exclude_outside:
        shares = np.where((positions >= 0) & (positions < spacing.size), shares, 0)
    # The shares of the others add up to 1 without that.
    if antialias or exclude_outside:
        shares = shares / shares.sum(axis=0)
    return _fewest(np.clip(positions, 0, spacing.size - 1), shares, spacing)


def _fewest(positions: Array, shares: Numbers, spacing: Spacing) -> Taps:
    """Merge taps of the same position and remove taps without a share."""
    # Clipped positions coincide at the borders: their shares add up in one place of the matrix.
    matrix = np.zeros((spacing.wanted, spacing.size))
    np.add.at(matrix, (np.arange(spacing.wanted)[np.newaxis], positions), shares)
    taps = max(1, int((np.abs(matrix) > _WHOLE).sum(axis=1).max()))
    # Each tap is a gather over the image, so that one fewer saves an operator. A result with fewer taps than others
    # gets some with share 0.
    greatest = np.sort(np.argsort(-np.abs(matrix), axis=1, kind="stable")[:, :taps], axis=1).T
    return Taps(greatest, np.take_along_axis(matrix, greatest.T, axis=1).T)
