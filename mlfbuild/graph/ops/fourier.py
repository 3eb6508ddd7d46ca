"""SignalRfft of TensorFlow Lite Micro: the Fourier transform of real samples, with the roundings of KISS FFT."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.graph.bases import rules
from mlfbuild.graph.bases.single import Single
from mlfbuild.graph.types import Array, DType, Tensor

_Complex = tuple[Array, Array]
"""Real and imaginary parts, int64 of int16 values."""
_ONE = (1 << 15) - 1


@dataclass(frozen=True)
class SignalRfft(Single):
    """The first half of the spectrum of ``length`` samples, complex, divided by ``length``; absent samples are 0."""

    length: int

    name: ClassVar[str] = "SignalRfft"
    types: ClassVar[tuple[DType, ...]] = (DType.INT16,)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        powers = [1 << bits for bits in range(2, 16)]
        return (
            rules.typed(source, DType.INT16)
            or rules.typed(output, DType.INT16)
            or rules.vectors(source)
            or (None if self.length in powers else f"fft_length {self.length} is not a power of 2 from 4 to 32768")
            or rules.within("the number of samples", source.shape[-1], 1, self.length)
            or rules.shape(output, (*source.shape[:-1], self.length + 2))
        )

    def reference(
        self, inputs: Sequence[Tensor | None], values: Sequence[Array | None], outputs: Sequence[Tensor]
    ) -> tuple[Array, ...]:
        assert values[0] is not None
        rows = values[0].reshape(-1, values[0].shape[-1]).astype(np.int64)
        rows = np.pad(rows, ((0, 0), (0, self.length - rows.shape[1])))
        return (self._spectra(rows).astype(np.int16).reshape(outputs[0].shape),)

    def _spectra(self, rows: Array) -> Array:
        half = self.length // 2
        roots = self.roots().astype(np.int64)
        table = (roots[:half, 0], roots[:half, 1])
        real, imaginary = _transform((rows[:, 0::2], rows[:, 1::2]), table, 1)
        spectra = np.zeros((len(rows), half + 1, 2), np.int64)
        low, high = _divided((real[:, 0], imaginary[:, 0]), 2)
        spectra[:, 0, 0], spectra[:, half, 0] = _wrapped(low + high), _wrapped(low - high)
        at = np.arange(1, half // 2 + 1)
        first = _divided((real[:, at], imaginary[:, at]), 2)
        last = _divided((real[:, half - at], _wrapped(-imaginary[:, half - at])), 2)
        even, odd = _sum(first, last), _difference(first, last)
        turned = _product(odd, (roots[half:, 0], roots[half:, 1]))
        spectra[:, at] = np.stack([even[0] + turned[0] >> 1, even[1] + turned[1] >> 1], axis=-1)
        spectra[:, half - at] = np.stack([even[0] - turned[0] >> 1, turned[1] - even[1] >> 1], axis=-1)
        return spectra

    def roots(self) -> Array:
        """Return the roots of unity of a transform of half the length, and those that separate even and odd samples."""
        half = self.length // 2
        phases = np.concatenate([
            -2 * math.pi * np.arange(half) / half,
            -math.pi * (np.arange(1, half // 2 + 1) / half + 0.5),
        ])  # fmt: skip
        return np.floor(0.5 + _ONE * np.stack([np.cos(phases), np.sin(phases)], axis=-1)).astype(np.int16)


def _transform(values: _Complex, roots: _Complex, stride: int) -> _Complex:
    size = values[0].shape[1]
    if size == 1:
        return values
    radix = 2 if size % 4 else 4
    parts = [
        _transform((values[0][:, at::radix], values[1][:, at::radix]), roots, stride * radix) for at in range(radix)
    ]
    steps = np.arange(size // radix) * stride
    zero, *others = (_divided(part, radix) for part in parts)
    turned = [_product(part, (roots[0][at * steps], roots[1][at * steps])) for at, part in enumerate(others, 1)]
    if radix == 2:
        results = [_sum(zero, turned[0]), _difference(zero, turned[0])]
    else:
        one, two, three = turned
        even, odd = _sum(zero, two), _difference(zero, two)
        total, (real, imaginary) = _sum(one, three), _difference(one, three)
        quarter = (imaginary, -real)
        results = [_sum(even, total), _sum(odd, quarter), _difference(even, total), _difference(odd, quarter)]
    real, imaginary = (np.concatenate([result[part] for result in results], axis=1) for part in (0, 1))
    return real, imaginary


def _wrapped(values: Array) -> Array:
    return values.astype(np.int16).astype(np.int64)


def _rounded(values: Array) -> Array:
    return _wrapped(values + (1 << 14) >> 15)


def _divided(value: _Complex, divisor: int) -> _Complex:
    return _rounded(value[0] * (_ONE // divisor)), _rounded(value[1] * (_ONE // divisor))


def _product(one: _Complex, two: _Complex) -> _Complex:
    return _rounded(one[0] * two[0] - one[1] * two[1]), _rounded(one[0] * two[1] + one[1] * two[0])


def _sum(one: _Complex, two: _Complex) -> _Complex:
    return _wrapped(one[0] + two[0]), _wrapped(one[1] + two[1])


def _difference(one: _Complex, two: _Complex) -> _Complex:
    return _wrapped(one[0] - two[0]), _wrapped(one[1] - two[1])
