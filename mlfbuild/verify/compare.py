"""Compare outputs with expected ones: integers exactly, floats within a fraction of the tensor's largest value.

The outputs of an operator that bounds them are measured by that bound, which is 1 for a sigmoid: near 0, a sigmoid
multiplies the relative error of its argument x by |x|, so a rounding error of a logit of -9 is nine times as large.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FLOAT_TOLERANCE = 1e-5
"""Floats of one layer pass if max|got - expected| <= FLOAT_TOLERANCE * max(|expected|, bound), over one output of one
case."""


@dataclass(frozen=True)
class ElementDifference:
    """The first wrong element of an output, and the number of wrong elements."""

    element: int
    expected: str
    got: str
    count: int
    elements: int

    def __str__(self) -> str:
        return (
            f"element {self.element}: expected {self.expected}, got {self.got} "
            f"({self.count} of {self.elements} elements differ)"
        )


def float_tolerance(layers: int) -> float:
    """Return the tolerance of a network with so many layers, as a part of the greatest expected value.

    Each layer sums products in its own order. The rounding errors of layers are independent, so together they
    grow with the square root of their number.
    """
    return FLOAT_TOLERANCE * math.sqrt(max(1, layers))


def first_difference(
    expected: npt.NDArray[Any], got: npt.NDArray[Any], tolerance: float = FLOAT_TOLERANCE, bound: float = 0.0
) -> ElementDifference | None:
    """Return the first difference of two flat arrays; ``None`` if they are equal (integers) or close enough (floats).

    ``expected`` and ``got`` have the same dtype and length. ``tolerance`` is a part of the largest expected magnitude,
    see ``float_tolerance``; ``bound`` is the greatest magnitude that floats of the tensor can have, 0 if that is
    unknown::

        first_difference(np.array([1, 2, 3]), np.array([1, 2, 4]))   # element 2: expected 3, got 4 (1 of 3 ...)
        first_difference(np.array([1.0, 8.0]), np.array([1.00007, 8.0]))   # None: 7e-5 <= 1e-5 * 8
    """
    wrong = _wrong_floats(expected, got, tolerance, bound) if expected.dtype.kind == "f" else expected != got
    # A NaN in place of a number is wrong; NaN where NaN is expected is not, whatever its payload.
    indices = np.flatnonzero(wrong)
    if indices.size == 0:
        return None
    element = int(indices[0])
    return ElementDifference(element, str(expected[element]), str(got[element]), indices.size, expected.size)


def _wrong_floats(
    expected: npt.NDArray[Any], got: npt.NDArray[Any], tolerance: float, bound: float
) -> npt.NDArray[np.bool_]:
    finite = np.isfinite(expected)
    # Without finite values only the bound is left; infinities must be equal, and do not widen the tolerance of other
    # elements.
    largest = float(np.max(np.abs(expected[finite]), initial=bound))
    with np.errstate(invalid="ignore", over="ignore"):
        # In float64: the difference of two large float32 values could overflow or round. "not <=" also catches NaN,
        # which compares false.
        far = ~(np.abs(got.astype(np.float64) - expected) <= tolerance * largest)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    wrong: npt.NDArray[np.bool_] = far & ~same
    return wrong
