"""SignalDelay, SignalWindow, SignalFftAutoScale and SignalEnergy of TensorFlow Lite Micro, around a Fourier transform.

Samples are integers without a scale; TensorFlow Lite Micro ignores one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class SignalWindow(Operator):
    """The product of samples and the weights of a window, which repeats, shifted right by ``shift`` and saturated."""

    shift: int

    name = "SignalWindow"
    types = (DType.INT16,)

    @rules.takes(2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        samples, weights = inputs
        return (
            rules.first(rules.typed(tensor, DType.INT16) for tensor in (samples, weights, outputs[0]))
            or rules.rank(weights, 1)
            or rules.vectors(samples)
            or rules.shape(outputs[0], samples.shape)
            or (None if samples.elements % weights.elements == 0 else f"{samples} is not a multiple of {weights}")
            or rules.within("shift", self.shift, 0, 31)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        samples, weights = (np.asarray(value, np.int64) for value in values)
        products = (samples.reshape(-1, len(weights)) * weights) >> self.shift
        return (np.clip(products, -(1 << 15), (1 << 15) - 1).astype(np.int16).reshape(samples.shape),)


class SignalFftAutoScale(Operator):
    """Samples times the greatest power of two for which none overflows, and its exponent."""

    name = "SignalFftAutoScale"
    types = (DType.INT16,)
    results = (DType.INT16, DType.INT32)

    @rules.takes(1, writes=2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        samples, (scaled, exponent) = inputs[0], outputs
        return (
            rules.typed(samples, DType.INT16)
            or rules.typed(scaled, DType.INT16)
            or rules.typed(exponent, DType.INT32)
            or rules.rank(samples, 1)
            or rules.shape(scaled, samples.shape)
            or rules.shape(exponent, ())
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        greatest = 0
        for value in values[0].tolist():
            # The int16 -32768 has no magnitude of its type: it becomes the maximum, below any element after it.
            if value > greatest:
                greatest = value
            elif -value > greatest:
                greatest = -value if value > -(1 << 15) else value
        bits = 0 if greatest <= 0 else 15 - greatest.bit_length()
        scaled = (values[0].astype(np.int64) << bits).astype(np.int16)
        return scaled, np.array(bits, np.int32)


class SignalEnergy(Single):
    """The squared magnitudes of the complex elements from ``start`` to before ``end`` of a spectrum; 0 elsewhere.

    The spectrum has int16 numbers, the real and the imaginary part in turn.
    """

    start: int
    end: int

    name = "SignalEnergy"
    types = (DType.INT16,)
    results = (DType.UINT32,)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.typed(source, DType.INT16)
            or rules.typed(output, DType.UINT32)
            or rules.rank(source, 1)
            or rules.rank(output, 1)
            or rules.within("end_index", self.end, 0, min(source.elements // 2, output.elements))
            or rules.within("start_index", self.start, 0, self.end)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        parts = values[0][2 * self.start : 2 * self.end].astype(np.int64).reshape(-1, 2)
        energies = np.zeros(outputs[0].shape, np.uint32)
        energies[self.start : self.end] = (parts**2).sum(axis=1).astype(np.uint32)
        return (energies,)


class SignalDelay(Operator):
    """Samples ``length`` elements later than they are read; the state has those that are still to be written."""

    length: int

    name = "SignalDelay"
    types = (DType.INT16,)

    @rules.takes(2, writes=2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        samples, before = inputs
        return (
            rules.first(rules.typed(tensor, DType.INT16) for tensor in (samples, before, *outputs))
            or rules.vectors(samples)
            or rules.shape(outputs[0], samples.shape)
            or rules.first(rules.shape(state, (*samples.shape[:-1], self.length)) for state in (before, outputs[1]))
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        samples, before = values
        line = np.concatenate([before, samples], axis=-1)
        return line[..., : samples.shape[-1]], line[..., samples.shape[-1] :]
