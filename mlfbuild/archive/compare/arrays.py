"""Compare parameters by value: the arrays that differ, the number of elements, and the largest difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from mlfbuild.archive.compare.library_difference import LibraryDifference, change

Array: TypeAlias = npt.NDArray[np.generic]

_ELEMENTS = 1 << 20
"""Number of elements that are compared at a time."""


def parameter_differences(
    module: str, left: Mapping[str, Array], right: Mapping[str, Array]
) -> Iterator[LibraryDifference]:
    """Yield a difference for each array that is not equal on both sides; the order of arrays has no meaning.

    One array of each side is in memory at a time.
    """
    for name in [*left, *(name for name in right if name not in left)]:
        if name not in right:
            yield LibraryDifference(module, "parameter", name, _type(left[name]), None, "only in the first")
        elif name not in left:
            yield LibraryDifference(module, "parameter", name, None, _type(right[name]), "only in the second")
        else:
            yield from _array_difference(module, name, left[name], right[name])


def _array_difference(module: str, name: str, left: Array, right: Array) -> Iterator[LibraryDifference]:
    if _type(left) != _type(right):
        yield LibraryDifference(module, "parameter", name, _type(left), _type(right), change(_type(left), _type(right)))
        return
    differing, most = differing_elements(left, right)
    if differing:
        by = "" if most is None else f", by at most {most:.6g}"
        text = f"{differing:,} of {left.size:,} elements differ{by}"
        facts: dict[str, Any] = {"elements": left.size, "differing": differing, "max_difference": most}
        yield LibraryDifference(module, "parameter", name, None, facts, text)


def _type(array: Array) -> str:
    return f"{array.dtype.name} {list(array.shape)}"


def differing_elements(left: Array, right: Array) -> tuple[int, float | None]:
    """Return the number of different elements of two arrays of the same type and shape, and the largest difference.

    Elements differ if their bits differ. The largest difference is ``None`` if there is no finite one, for example with
    NaN.
    """
    bits = np.dtype(f"u{left.dtype.itemsize}")
    flat = left.reshape(-1), right.reshape(-1)
    differing, most = 0, None
    for start in range(0, left.size, _ELEMENTS):
        a, b = (array[start : start + _ELEMENTS] for array in flat)
        places = np.flatnonzero(a.view(bits) != b.view(bits))
        if places.size:
            differing += int(places.size)
            distance = _largest_distance(a[places], b[places])
            most = distance if most is None else max(most, distance if distance is not None else most)
    return differing, most


def _largest_distance(left: Array, right: Array) -> float | None:
    """Return the largest absolute difference of two arrays; integers are subtracted exactly."""
    if left.dtype.kind in "iu":
        high, low = np.maximum(left, right), np.minimum(left, right)
        with np.errstate(over="ignore"):  # the true difference fits an unsigned number of the same width
            return float((high - low).view(np.dtype(f"u{left.dtype.itemsize}")).max())
    with np.errstate(invalid="ignore", over="ignore"):
        distances = np.abs(left.astype(np.float64) - right.astype(np.float64))
    finite = distances[np.isfinite(distances)]
    return float(finite.max()) if finite.size else None
