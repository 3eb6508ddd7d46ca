"""PAIRWISE_COUPLING: probabilities of classes from those of their pairs, as in libsvm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

# Both are those of multiclass_probability in libsvm's svm.cpp. Another tolerance would stop at other probabilities.
_ITERATIONS = 100
_TOLERANCE = 0.005


class PairwiseCoupling(Single):
    """The second method of Wu, Lin and Weng (2004), iterated in float32 like libsvm and ONNX's reference.

    float32 [rows, pairs] to [rows, classes]; element (i, j) of a row, i < j, is the probability of i against j.
    """

    classes: int

    name = "PAIRWISE_COUPLING"
    types = (DType.FLOAT32,)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        if self.classes < 2:
            return f"couples {self.classes} classes"
        return (
            rules.arithmetic(source, output, types=self.types)
            or rules.rank(source, 2)
            or rules.shape(source, (source.shape[0], self.classes * (self.classes - 1) // 2))
            or rules.shape(output, (source.shape[0], self.classes))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (np.stack([self._coupled(row) for row in values[0]]),)

    def _coupled(self, pairs: Array) -> Array:
        count = self.classes
        against = np.zeros((count, count), np.float32)
        for (first, second), share in zip(combinations(range(count), 2), pairs, strict=True):
            # The probability of j against i is the complement; the diagonal stays 0.
            against[first, second], against[second, first] = share, 1 - share
        # Q of the paper: -r_ji r_ij off the diagonal, and the sum of the squares r_ji**2 on it.
        matrix = -against.T * against
        for at in range(count):
            matrix[at, at] = _sum(against[other, at] ** 2 for other in range(count) if other != at)
        shares = np.full(count, np.float32(1 / count))
        # As in libsvm, at least as many rounds as there are classes.
        for _ in range(max(_ITERATIONS, count)):
            products = np.array([_sum(row * shares) for row in matrix], np.float32)
            total = _sum(shares * products)
            if np.abs(products - total).max() < np.float32(_TOLERANCE / count):
                break
            for at in range(count):
                step = (total - products[at]) / matrix[at, at]
                scale = 1 + step
                # The shares must add up to 1, so that all are divided by the new sum; total and products follow from
                # that.
                shares[at] += step
                total = (total + step * (step * matrix[at, at] + 2 * products[at])) / scale / scale
                shares /= scale
                products = (products + step * matrix[at]) / scale
        return shares


def _sum(values: Iterable[np.float32]) -> np.float32:
    """Add ``values`` in float32, in order like the kernel."""
    total: np.float32 = np.float32(0)
    for value in values:
        total += value
    return total
