"""Fourier transforms of float32 of any length, and the parts of complex numbers.

Complex numbers are float32 in a last dimension of 2: the real and the imaginary part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class Dft(Operator):
    """The discrete Fourier transform of ``length`` samples of each frame; absent samples are 0.

    Input [outer, samples, inner, 1 or 2 parts], and perhaps a window, a factor for each sample of a frame. Output
    [outer, frames, bins, inner, 1 or 2 parts]; the first bins of the spectrum. ``mirrored`` samples are the first half
    of a spectrum of real numbers, and the other half are their conjugates.
    """

    length: int
    step: int
    """The number of samples from the first of a frame to that of the next."""
    inverse: bool = False
    mirrored: bool = False

    name = "DFT"
    types = (DType.FLOAT32,)

    @rules.takes(1, optional=1)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        source, output = inputs[0], outputs[0]
        window = inputs.optional(1)
        reason = (
            rules.arithmetic(source, output, *([] if window is None else [window]), types=self.types)
            or rules.rank(source, 4)
            or rules.rank(output, 5)
        )
        if reason is not None:
            return reason
        (outer, samples, inner, parts), (frames, bins) = source.shape, output.shape[1:3]
        return (
            rules.within("the length", self.length, 1, 1 << 20)
            or rules.within("the step", self.step, 1, 1 << 24)
            or rules.within("the number of parts", parts, 1, 2)
            or rules.within("the number of parts", output.shape[4], 1, 2)
            # More bins than samples do not exist: the spectrum is periodic.
            or rules.within("the number of bins", bins, 1, self.length)
            or rules.shape(output, (outer, frames, bins, inner, output.shape[4]))
            # A single frame may reach beyond the samples, which are then 0; several frames may not.
            or (None if frames == 1 else rules.within("the end", (frames - 1) * self.step + self.length, 1, samples))
            or (None if window is None else rules.shape(window, (self.length,)))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, output = values[0].astype(np.float64), outputs[0]
        # One part is a real signal, two parts are a complex one.
        samples = source[..., 0] + (1j * source[..., 1] if source.shape[3] == 2 else 0)
        results = []
        for start in range(0, output.shape[1] * self.step, self.step):
            frame = samples[:, start : start + self.length]
            if len(values) > 1 and values[1] is not None:
                frame = frame * values[1].astype(np.float64)[:, np.newaxis]
            results.append(self._spectrum(frame)[:, : output.shape[2]])
        made = np.stack(results, axis=1)
        whole = np.stack([made.real, made.imag], axis=-1)[..., : output.shape[4]]
        return (whole.astype(np.float32),)

    def _spectrum(self, frame: Array) -> Array:
        if self.mirrored:
            # The input may have fewer bins than half of the spectrum; those that are missing are 0.
            known = min(self.length // 2 + 1, frame.shape[1])
            whole = np.zeros((frame.shape[0], self.length, frame.shape[2]), np.complex128)
            whole[:, :known] = frame[:, :known]
            # Bin k of a spectrum of real numbers is the conjugate of bin length - k.
            beyond = np.arange(self.length // 2 + 1, self.length)
            whole[:, beyond] = whole[:, self.length - beyond].conj()
            frame = whole
        transform = np.fft.ifft if self.inverse else np.fft.fft
        return np.asarray(transform(frame, n=self.length, axis=1))

    def packed(self, source: Sequence[int]) -> bool:
        """Return whether a transform of half the length computes it; ``source`` is the shape of the input."""
        # Real samples at even and odd positions are the two parts of half as many complex numbers.
        return source[3] == 1 and self.length % 2 == 0 and not self.inverse

    def size(self, source: Sequence[int]) -> int:
        """Return the number of complex numbers that are transformed at a time.

        Packed transforms of real samples have half as many.
        """
        return self.length // 2 if self.packed(source) else self.length

    def unit_roots(self) -> Array:
        """Return the roots of unity [length, 2].

        The result is float32 [length, 2], cosine and sine; the inverse has the other sign.
        """
        phases = (2 if self.inverse else -2) * math.pi * np.arange(self.length) / self.length
        return np.stack([np.cos(phases), np.sin(phases)], axis=-1).astype(np.float32)


class Rfft2d(Single):
    """The first half of the spectrum of real images of ``height`` rows and ``width`` columns.

    Input [..., rows, columns], which are cut, or padded with 0; output [..., height, width / 2 + 1, 2].
    """

    height: int
    width: int

    name = "RFFT2D"
    types = (DType.FLOAT32,)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        if len(source.shape) < 2:
            return f"{source} must have at least 2 dimensions"
        return (
            rules.arithmetic(source, output, types=self.types)
            or rules.within("the height", self.height, 1, 1 << 20)
            or rules.within("the width", self.width, 1, 1 << 20)
            or rules.shape(output, (*source.shape[:-2], self.height, self.width // 2 + 1, 2))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        # NumPy cuts or pads rows and columns in the same way.
        made = np.fft.rfft2(values[0].astype(np.float64), (self.height, self.width))
        return (np.stack([made.real, made.imag], axis=-1).astype(np.float32),)

    def rows(self) -> Dft:
        """Return the transform of each row, which comes first."""
        return Dft(self.width, 1)

    def columns(self) -> Dft:
        """Return the transform of each column of the spectra of rows."""
        return Dft(self.height, 1)


class ComplexPart(Single):
    """A real number that follows from each complex number."""

    types = (DType.FLOAT32,)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        if source.shape[-1:] != (2,):
            return f"{source} must have 2 parts in its last dimension"
        return rules.arithmetic(source, output, types=self.types) or rules.shape(output, source.shape[:-1])


class Real(ComplexPart):
    """The real parts."""

    name = "REAL"

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (values[0][..., 0],)


class Imag(ComplexPart):
    """The imaginary parts."""

    name = "IMAG"

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (values[0][..., 1],)


class ComplexAbs(ComplexPart):
    """The magnitudes."""

    name = "COMPLEX_ABS"

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        return (np.hypot(values[0][..., 0], values[0][..., 1]),)
