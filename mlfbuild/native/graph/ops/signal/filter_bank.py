"""The filter banks of TensorFlow Lite Micro, from the energies of a spectrum to features of speech."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

_WORD = (1 << 32) - 1
_LN_2 = 45426
"""The natural logarithm of 2 with 16 fraction bits."""
GAINS = 125
"""Elements of a table of gains: 3 for the least inputs, and 3 of every 4 for each further bit of the others."""


class SignalFilterBank(Operator):
    """The energies of ``channels`` bands that overlap by half.

    Inputs after the energies are constant: the weights of all bands, those for the band after them, and for every
    band, and one before the first, where its energies begin, where its weights begin, and how many there are.
    """

    channels: int

    name = "SignalFilterBank"
    types = (DType.UINT32,)
    results = (DType.UINT64,)

    @rules.takes(6)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        energies, *constants = inputs.present
        return (
            rules.typed(energies, DType.UINT32)
            or rules.typed(outputs[0], DType.UINT64)
            or rules.first(rules.typed(tensor, DType.INT16) for tensor in constants)
            or rules.first(rules.rank(tensor, 1) for tensor in (energies, *constants))
            or rules.shape(outputs[0], (self.channels,))
            or rules.first(None if each.constant else f"{each} must be constant" for each in constants)
            or rules.first(rules.shape(tensor, (self.channels + 1,)) for tensor in constants[2:])
            or _check_bands(energies, constants)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        energies, weights, others = (np.asarray(value).astype(np.uint64) for value in values[:3])
        bands = zip(*(np.asarray(value).tolist() for value in values[3:]), strict=True)
        sums, carried = [], np.uint64(0)
        # Neighbouring bands overlap: an energy counts in its own band by one weight and in the next by the other. So
        # each pass yields two sums, and the second one is carried.
        for start, first, width in bands:
            part = energies[start : start + width]
            own, other = ((each[first : first + width] * part).sum(dtype=np.uint64) for each in (weights, others))
            sums.append(np.add(own, carried, dtype=np.uint64))
            carried = other
        # The first entry is not a band: it only has what is carried into the first one.
        return (np.array(sums[1:], np.uint64),)


def _check_bands(energies: Tensor, constants: Sequence[Tensor]) -> str | None:
    weights, others, *bands = constants
    starts, firsts, widths = (np.asarray(tensor.data, np.int64) for tensor in bands)
    limit = min(weights.elements, others.elements)
    read = widths > 0
    for begin, count, what in ((starts, energies.elements, energies), (firsts, limit, weights)):
        if (read & ((begin < 0) | (begin + widths > count))).any():
            return f"a band is outside {what}"
    return None


class SignalFilterBankSquareRoot(Operator):
    """Square roots, rounded to the nearest and shifted right by a number of bits that is computed at run time."""

    name = "SignalFilterBankSquareRoot"
    types = (DType.UINT64,)
    results = (DType.UINT32,)

    @rules.takes(2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        energies, bits = inputs
        return (
            rules.typed(energies, DType.UINT64)
            or rules.typed(bits, DType.INT32)
            or rules.typed(outputs[0], DType.UINT32)
            or rules.rank(energies, 1)
            or rules.shape(bits, ())
            or rules.shape(outputs[0], energies.shape)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        bits = int(values[1])
        # The number is known only at run time, and longer shifts are undefined in C.
        if not 0 <= bits <= 31:
            return (np.zeros(outputs[0].shape, np.uint32),)
        return (np.array([_root(value) >> bits for value in values[0].tolist()], np.uint32),)


def _root(value: int) -> int:
    """Return the nearest square root that 16 bits hold, or 32 if ``value`` has more than 32 bits."""
    # isqrt and not the root of a double, which has 53 bits and rounds some squares up.
    floor, greatest = math.isqrt(value), 0xFFFF if value <= _WORD else _WORD
    return floor + (value - floor * floor > floor and floor != greatest)


class SignalFilterBankSpectralSubtraction(Operator):
    """Energies minus an estimate of the noise, which is an average over the runs, the second output and the state.

    ``smoothing`` and ``rest`` weigh the new energy and the old estimate in channels of even number, the other two those
    of odd number, with ``bits`` fraction bits. ``floor`` is the least part of the energy that is left.
    """

    smoothing: int
    rest: int
    odd_smoothing: int
    odd_rest: int
    floor: int
    smoothing_bits: int
    bits: int
    clamping: bool
    channels: int

    name = "SignalFilterBankSpectralSubtraction"
    types = (DType.UINT32,)

    @rules.takes(2, writes=3)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        tensors = (*inputs.present, *outputs)
        return (
            rules.first(rules.typed(tensor, DType.UINT32) for tensor in tensors)
            or rules.first(rules.shape(tensor, (self.channels,)) for tensor in tensors)
            or rules.within("smoothing_bits", self.smoothing_bits, 0, 31)
            or rules.within("spectral_subtraction_bits", self.bits, 0, 63)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        results, estimates = [], []
        for at, (value, before) in enumerate(zip(values[0].tolist(), values[1].tolist(), strict=True)):
            new, old = (self.odd_smoothing, self.odd_rest) if at % 2 else (self.smoothing, self.rest)
            # Unsigned 32-bit arithmetic that wraps, like the C: Python's integers do not.
            scaled = (value << self.smoothing_bits) & _WORD
            estimate = self._shifted(scaled * (new & _WORD) + before * (old & _WORD))
            # The difference is unsigned, and must not wrap around below 0.
            noise = min(estimate, scaled)
            left = max((scaled - noise) >> self.smoothing_bits, self._shifted(value * (self.floor & _WORD)))
            results.append(left)
            estimates.append(noise if self.clamping else estimate)
        after = np.array(estimates, np.uint32)
        return np.array(results, np.uint32), after, after

    def _shifted(self, product: int) -> int:
        """Return the uint32 of a uint64, which may have wrapped around, without its fraction bits."""
        return ((product & ((1 << 64) - 1)) >> self.bits) & _WORD


class SignalPcan(Operator):
    """Per-channel gains: energies times a function of the noise, interpolated in a table, then compressed."""

    snr_shift: int

    name = "SignalPCAN"
    types = (DType.UINT32,)

    @rules.takes(3)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        energies, noise, gains = inputs
        return (
            rules.first(rules.typed(tensor, DType.UINT32) for tensor in (energies, noise, outputs[0]))
            or rules.typed(gains, DType.INT16)
            or rules.rank(energies, 1)
            or rules.shape(noise, energies.shape)
            or rules.rank(gains, 1)
            or rules.shape(outputs[0], energies.shape)
            or (None if gains.elements >= GAINS else f"{gains} has fewer than {GAINS} elements")
            or rules.within("snr_shift", self.snr_shift, 0, 63)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        energies, noise, gains = (np.asarray(value).tolist() for value in values)
        results = []
        for energy, level in zip(energies, noise, strict=True):
            gain = _gain(level, gains) & _WORD
            ratio = (((energy * gain) & ((1 << 64) - 1)) >> self.snr_shift) & _WORD
            results.append(((ratio * ratio) & _WORD) >> 20 if ratio < 2 << 12 else (ratio >> 6) - (1 << 6))
        return (np.array(results, np.uint32),)


def _gain(level: int, gains: Sequence[int]) -> int:
    """Return the int16 that a polynomial for each power of two interpolates."""
    if level <= 2:
        return gains[level]
    bits = level.bit_length()
    constant, linear, square = gains[4 * bits - 6 : 4 * bits - 3]
    # The 10 bits after the leading one. Each power of two has three coefficients in a group of four elements.
    fraction = (level << 11 >> bits) & 0x3FF
    value = (((square * fraction >> 5) + (linear << 5)) * fraction + (1 << 14) >> 15) + constant
    return (value + (1 << 15)) % (1 << 16) - (1 << 15)


class SignalFilterBankLog(Single):
    """The natural logarithm of energies shifted left by ``correction``, times ``scale``; 0 for 0 and 1."""

    correction: int
    scale: int

    name = "SignalFilterBankLog"
    types = (DType.UINT32,)
    results = (DType.INT16,)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return (
            rules.typed(source, DType.UINT32)
            or rules.typed(output, DType.INT16)
            or rules.rank(source, 1)
            or rules.shape(output, source.shape)
            or rules.within("input_correction_bits", self.correction, 0, 31)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        table = logarithms().tolist()
        scaled = [(value << self.correction) & _WORD for value in values[0].tolist()]
        return (np.array([self._log(value, table) for value in scaled], np.int16),)

    def _log(self, value: int, table: Sequence[int]) -> int:
        if value <= 1:
            return 0
        bits = value.bit_length() - 1
        fraction = (value - (1 << bits)) << 16 >> bits
        at, rest = fraction >> 9, fraction & 511
        binary = (bits << 16) + fraction + table[at] + ((table[at + 1] - table[at]) * rest >> 16)
        # The logarithm to base 2 has 16 fraction bits. Half of the last bit is added, because a shift rounds down.
        natural = _LN_2 * binary + (1 << 15) >> 16
        return min((((self.scale & _WORD) * natural + (1 << 15)) & _WORD) >> 16, (1 << 15) - 1)


def logarithms() -> Array:
    """Return log2(1 + x) - x at 129 values of x from 0 to 1, with 16 fraction bits."""
    steps = (position / 128 for position in range(129))
    return np.array([round((math.log2(1 + x) - x) * (1 << 16)) for x in steps], np.uint16)
