"""Compare parameters by value, and inputs and outputs in call order.

For parameters, a difference states how many elements differ and the largest distance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from mlfbuild.archive.compare.library_difference import LibraryDifference, by_name, change
from mlfbuild.library import Array, TensorInfo

_ELEMENTS = 1 << 20
"""Number of elements that are compared at a time."""


def parameter_differences(
    module: str, left: Mapping[str, Array], right: Mapping[str, Array]
) -> Iterator[LibraryDifference]:
    """Yield a difference for each array that is not equal on both sides; the order of arrays has no meaning.

    One array of each side is in memory at a time.
    """
    yield from by_name((module, "parameter"), left, right, _type, partial(_array_difference, module))


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
    # In pieces, because the masks and indices of a comparison take a multiple of the memory of the arrays.
    for start in range(0, left.size, _ELEMENTS):
        a, b = (array[start : start + _ELEMENTS] for array in flat)
        # Bits instead of values: NaN differs from itself as a value, and 0.0 equals -0.0.
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
        # As 64-bit floats, in which the difference of two half or single floats does not overflow.
        distances = np.abs(left.astype(np.float64) - right.astype(np.float64))
    finite = distances[np.isfinite(distances)]
    return float(finite.max()) if finite.size else None


_FIELDS = ("dtype", "size", "shape", "scale", "zero_point")


def tensor_differences(
    module: str, what: str, left: Sequence[TensorInfo], right: Sequence[TensorInfo]
) -> Iterator[LibraryDifference]:
    """Yield differences between the inputs or outputs of one module; none if they are unknown on one side.

    The order is part of the meaning, because it is the order of the arguments.
    """
    if not left or not right:
        return
    sides = [{tensor.name: tensor for tensor in side} for side in (left, right)]
    # Without the tensors of only one side, which would otherwise count as a change of the order as well.
    old, new = ([name for name in side if name in sides[0] and name in sides[1]] for side in sides)
    yield from by_name((module, what), sides[0], sides[1], _tensor_type, partial(_changes, module, what))
    if old != new:
        yield LibraryDifference(module, what, "", old, new, f"order {change(', '.join(old), ', '.join(new))}")


def _changes(module: str, what: str, name: str, left: TensorInfo, right: TensorInfo) -> Iterator[LibraryDifference]:
    """Yield a difference for each property that is known on both sides and differs."""
    for key in _FIELDS:
        first, second = _plain(getattr(left, key)), _plain(getattr(right, key))
        # None means that an archive does not record the property, not that the tensor lacks it.
        if first != second and first is not None and second is not None:
            yield LibraryDifference(
                module, what, name, first, second, f"{key.replace('_', ' ')} {change(first, second)}"
            )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _tensor_type(tensor: TensorInfo) -> dict[str, Any]:
    return {"dtype": tensor.dtype, "size": tensor.size, "shape": _plain(tensor.shape)}
