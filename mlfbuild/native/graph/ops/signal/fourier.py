"""SignalRfft and SignalIrfft of TensorFlow Lite Micro: Fourier transforms with the roundings of KISS FFT.

KISS FFT transforms real samples as half as many complex numbers, in stages of 4, 2, 3 and 5. Integers are divided by
the size of a stage before it, each product is rounded, and sums wrap around. TensorFlow Lite Micro fails for others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

LONGEST = 1 << 15
"""Samples of a transform; more do not fit into the memory of any microcontroller."""
_Complex = tuple[Array, Array]
"""Real and imaginary parts: int64 for integers, or float32."""


class SignalFourier(Single):
    """A Fourier transform of ``length`` real numbers."""

    length: int

    types = (DType.INT16, DType.INT32, DType.FLOAT32)
    inverse: ClassVar[bool]

    def _check_length(self, source: Tensor, output: Tensor) -> str | None:
        # Below 4, a transform has no pair of mirrored bins to separate.
        known = self.length >= 4 and self.length % 2 == 0 and math.prod(self.factors()) == self.length // 2
        return (
            (None if source.dtype in self.types else f"{source} must be {rules.alternatives(self.types)}")
            or rules.typed(output, source.dtype)
            or rules.vectors(source)
            or rules.within("fft_length", self.length, 4, LONGEST)
            or (None if known else f"fft_length {self.length} is not twice a product of 2, 3 and 5")
        )

    def factors(self) -> list[int]:
        """Return the sizes of the stages, the last one first, as far as 2, 3 and 5 divide half the length."""
        found, rest = [], self.length // 2
        # In the order of KISS FFT's kf_factor, because each stage rounds.
        for factor in (4, 2, 3, 5):
            while rest % factor == 0:
                found.append(factor)
                rest //= factor
        return found

    def order(self) -> Array:
        """Return the positions of the complex numbers before the first stage.

        The result is uint16: complex number i of the input goes to position ``order[i]``.
        """
        order = np.zeros(1, np.int64)
        # The permutation of a mixed-radix transform: digits of the position in reverse order.
        for factor in reversed(self.factors()):
            order = np.concatenate([order * factor + at for at in range(factor)])
        return np.argsort(order).astype(np.uint16)

    def roots(self, dtype: DType) -> Array:
        """Return the roots of unity in the order of their use: those of each stage, and of the separation.

        The separation of the spectra of even and odd samples is the last step, or the first one of the inverse. A stage
        of 3 begins with a constant, and a stage of 5 with two: roots of unity of that size.

        int16, int32 or float32 [roots, 2] with the cosine and the sine; integers are scaled by their greatest value.
        """
        unity, part, found = self._unity(dtype), 1, []
        for factor in reversed(self.factors()):
            stride = self.length // 2 // (part * factor)
            # A stage of 3 needs one constant, one of 5 two; the others multiply by 1, -1, i and -i only.
            own = np.arange(1, {3: 2, 5: 3}.get(factor, 1)) * stride * part
            # The roots of step 0 are 1 and left out.
            others = [np.arange(part) * stride * step for step in range(1, factor)]
            found.append(unity[np.concatenate([own, *others])])
            part *= factor
        return np.concatenate([self._separation(dtype), *found] if self.inverse else [*found, self._separation(dtype)])

    def _unity(self, dtype: DType) -> Array:
        half = self.length // 2
        return self._circle([-2 * math.pi * step / half for step in range(half)], dtype)

    def _separation(self, dtype: DType) -> Array:
        half = self.length // 2
        return self._circle([-math.pi * ((step + 1) / half + 0.5) for step in range(half // 2)], dtype)

    def _circle(self, phases: Sequence[float], dtype: DType) -> Array:
        """Return cosines and sines; the functions of numpy may differ in the last bit, which rounding can magnify."""
        # The inverse has the conjugate roots.
        signed = [-phase if self.inverse else phase for phase in phases]
        # One by one in C's library, not vectorised.
        parts = np.array([(math.cos(phase), math.sin(phase)) for phase in signed]).reshape(-1, 2)
        if dtype is DType.FLOAT32:
            return parts.astype(np.float32)
        # As in KISS FFT: half up, also for negative numbers. 1 becomes the greatest integer, because 2**15 and 2**31 do
        # not fit.
        return np.floor(0.5 + np.iinfo(dtype.numpy).max * parts).astype(dtype.numpy)

    def _transform(self, values: _Complex, numbers: _Numbers) -> _Complex:
        unity = self._unity(numbers.dtype).astype(numbers.wide)
        return numbers.transform(values, (unity[:, 0], unity[:, 1]), self.factors(), inverse=self.inverse)

    def _separate(self, low: _Complex, high: _Complex, numbers: _Numbers) -> tuple[_Complex, _Complex]:
        """Return the sum of two mirrored halves of a spectrum, and their difference times a root of unity."""
        roots = self._separation(numbers.dtype).astype(numbers.wide)
        # The mirrored half is the conjugate of the spectrum of real samples. Division before the sum avoids overflow.
        first, last = (numbers.divided(each, 2) for each in (low, (high[0], numbers.wrapped(-high[1]))))
        return numbers.sum(first, last), numbers.product(numbers.difference(first, last), (roots[:, 0], roots[:, 1]))


class SignalRfft(SignalFourier):
    """The first half of the spectrum of ``length`` samples, complex; absent samples are 0.

    Integers are divided by ``length``.
    """

    name = "SignalRfft"
    inverse = False
    many_rows = True

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            self._check_length(source, output)
            or rules.within("the number of samples", source.shape[-1], 1, self.length)
            or rules.shape(output, (*source.shape[:-1], self.length + 2))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        numbers, half = _Numbers(outputs[0].dtype), self.length // 2
        rows = values[0].reshape(-1, values[0].shape[-1]).astype(numbers.wide)
        # Absent samples are 0, as TensorFlow Lite Micro pads the input.
        rows = np.pad(rows, ((0, 0), (0, self.length - rows.shape[1])))
        real, imaginary = self._transform((rows[:, 0::2], rows[:, 1::2]), numbers)
        spectra = np.zeros((len(rows), half + 1, 2), numbers.wide)
        low, high = numbers.divided((real[:, 0], imaginary[:, 0]), 2)
        at = np.arange(1, half // 2 + 1)
        even, odd = self._separate(
            (real[:, at], imaginary[:, at]), (real[:, half - at], imaginary[:, half - at]), numbers
        )
        # Bins 0 and half are real: the sum and the difference of the first complex number's parts.
        spectra[:, 0, 0], spectra[:, half, 0] = numbers.wrapped(low + high), numbers.wrapped(low - high)
        spectra[:, at] = np.stack([numbers.mean(even[0], odd[0]), numbers.mean(even[1], odd[1])], axis=-1)
        spectra[:, half - at] = np.stack([numbers.mean(even[0], -odd[0]), numbers.mean(odd[1], -even[1])], axis=-1)
        return (spectra.astype(outputs[0].dtype.numpy).reshape(outputs[0].shape),)


class SignalIrfft(SignalFourier):
    """The ``length`` samples whose spectrum has the input as its first half.

    Integers are divided by ``length`` once more than the sum of a spectrum that SignalRfft computes.
    """

    name = "SignalIrfft"
    inverse = True

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            self._check_length(source, output)
            or rules.shape(source, (*source.shape[:-1], self.length + 2))
            or rules.shape(output, (*source.shape[:-1], self.length))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        numbers, half = _Numbers(outputs[0].dtype), self.length // 2
        spectra = values[0].reshape(-1, half + 1, 2).astype(numbers.wide)
        real, imaginary = spectra[:, :, 0], spectra[:, :, 1]
        packed = np.zeros((2, len(spectra), half), numbers.wide)
        ends = numbers.wrapped(real[:, 0] + real[:, half]), numbers.wrapped(real[:, 0] - real[:, half])
        packed[:, :, 0] = numbers.divided(ends, 2)
        at = np.arange(1, half // 2 + 1)
        even, odd = self._separate(
            (real[:, at], imaginary[:, at]), (real[:, half - at], imaginary[:, half - at]), numbers
        )
        packed[:, :, at] = numbers.sum(even, odd)
        mirrored = numbers.difference(even, odd)
        packed[:, :, half - at] = mirrored[0], numbers.wrapped(-mirrored[1])
        samples = np.stack(self._transform((packed[0], packed[1]), numbers), axis=-1).reshape(outputs[0].shape)
        if outputs[0].dtype is DType.FLOAT32:
            # The integer stages have divided already.
            samples = samples / np.float32(self.length)
        return (samples.astype(outputs[0].dtype.numpy),)


@dataclass(frozen=True)
class _Numbers:
    """Complex arithmetic of a type: fixed point with one bit before the point, or float32."""

    dtype: DType

    @property
    def wide(self) -> type[np.generic]:
        return np.float32 if self.dtype is DType.FLOAT32 else np.int64

    def wrapped(self, values: Array) -> Array:
        return values if self.dtype is DType.FLOAT32 else values.astype(self.dtype.numpy).astype(np.int64)

    def _rounded(self, values: Array) -> Array:
        if self.dtype is DType.FLOAT32:
            return values
        # sround of KISS FFT: half of the last bit is added, then an arithmetic shift, so that halves are rounded up.
        bits = np.iinfo(self.dtype.numpy).bits - 1
        return self.wrapped(values + (1 << (bits - 1)) >> bits)

    def divided(self, value: _Complex, divisor: int) -> _Complex:
        if self.dtype is DType.FLOAT32:
            return value
        # C_FIXDIV of KISS FFT multiplies by SAMP_MAX / divisor, whose quotient is truncated: 16383 / 32768 is a bit
        # less than a half.
        return self._scaled(value, np.int64(np.iinfo(self.dtype.numpy).max // divisor))

    def mean(self, one: Array, two: Array) -> Array:
        """Return half of a sum; that of int16 does not wrap around."""
        if self.dtype is DType.FLOAT32:
            return np.asarray((one + two) * np.float32(0.5))
        # int16 is added in 32 bits by the C and cannot wrap there; int32 does.
        return np.asarray((one + two if self.dtype is DType.INT16 else self.wrapped(one + two)) >> 1)

    def product(self, one: _Complex, two: _Complex) -> _Complex:
        return self._rounded(one[0] * two[0] - one[1] * two[1]), self._rounded(one[0] * two[1] + one[1] * two[0])

    def _scaled(self, value: _Complex, factor: Array | np.generic) -> _Complex:
        return self._rounded(value[0] * factor), self._rounded(value[1] * factor)

    def sum(self, one: _Complex, two: _Complex) -> _Complex:
        return self.wrapped(one[0] + two[0]), self.wrapped(one[1] + two[1])

    def difference(self, one: _Complex, two: _Complex) -> _Complex:
        return self.wrapped(one[0] - two[0]), self.wrapped(one[1] - two[1])

    def transform(self, values: _Complex, unity: _Complex, factors: Sequence[int], *, inverse: bool) -> _Complex:
        if not factors:
            return values
        factor, size, every = factors[0], values[0].shape[1], len(unity[0])
        parts = [
            self.transform((values[0][:, at::factor], values[1][:, at::factor]), unity, factors[1:], inverse=inverse)
            for at in range(factor)
        ]
        steps = np.arange(size // factor) * (every // size)
        zero, *others = (self.divided(part, factor) for part in parts)
        turned = [self.product(part, (unity[0][at * steps], unity[1][at * steps])) for at, part in enumerate(others, 1)]
        # Every root at multiples of a factor-th of the circle: the constants of this stage.
        own = [(unity[0][at], unity[1][at]) for at in range(0, every, every // factor)]
        results = {2: self._two, 3: self._three, 4: self._four, 5: self._five}[factor](zero, turned, own)
        # The stage of 4 multiplies by i without a root of unity, and i has the other sign in the inverse.
        if factor == 4 and inverse:
            results[1], results[3] = results[3], results[1]
        real, imaginary = (np.concatenate([result[part] for result in results], axis=1) for part in (0, 1))
        return real, imaginary

    def _two(self, zero: _Complex, turned: Sequence[_Complex], _own: Sequence[_Complex]) -> list[_Complex]:
        return [self.sum(zero, turned[0]), self.difference(zero, turned[0])]

    def _three(self, zero: _Complex, turned: Sequence[_Complex], own: Sequence[_Complex]) -> list[_Complex]:
        total = self.sum(*turned)
        # KISS FFT halves the sum with a shift for stages of 3, which rounds down.
        halves = self.mean(total[0], np.zeros_like(total[0])), self.mean(total[1], np.zeros_like(total[1]))
        middle, rest = self.difference(zero, halves), self._scaled(self.difference(*turned), own[1][1])
        return [self.sum(zero, total), self.difference(middle, _quarter(rest)), self.sum(middle, _quarter(rest))]

    def _four(self, zero: _Complex, turned: Sequence[_Complex], _own: Sequence[_Complex]) -> list[_Complex]:
        one, two, three = turned
        even, odd = self.sum(zero, two), self.difference(zero, two)
        total, quarter = self.sum(one, three), _quarter(self.difference(one, three))
        return [
            self.sum(even, total),
            self.sum(odd, quarter),
            self.difference(even, total),
            self.difference(odd, quarter),
        ]

    def _five(self, zero: _Complex, turned: Sequence[_Complex], own: Sequence[_Complex]) -> list[_Complex]:
        outer, inner = self.sum(turned[0], turned[3]), self.sum(turned[1], turned[2])
        outer_rest, inner_rest = self.difference(turned[0], turned[3]), self.difference(turned[1], turned[2])
        (near, near_sine), (far, far_sine) = own[1], own[2]
        first = self.sum(self.sum(zero, self._scaled(outer, near)), self._scaled(inner, far))
        second = self.sum(self.sum(zero, self._scaled(outer, far)), self._scaled(inner, near))
        one = _quarter(self.sum(self._scaled(outer_rest, near_sine), self._scaled(inner_rest, far_sine)))
        two = _quarter(self.difference(self._scaled(inner_rest, near_sine), self._scaled(outer_rest, far_sine)))
        return [
            self.sum(zero, self.sum(outer, inner)), self.difference(first, one), self.sum(second, two),
            self.difference(second, two), self.sum(first, one),
        ]  # fmt: skip


def _quarter(value: _Complex) -> _Complex:
    """Return a complex number turned back by 90 degrees."""
    return value[1], -value[0]
