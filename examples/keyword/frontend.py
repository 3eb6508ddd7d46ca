"""The audio front end: 20 ms of samples -> the logarithms of the energies in 40 bands, as a .tflite file.

The constants are those of `audio_preprocessor_int8.tflite`, the front end of TensorFlow Lite Micro's micro_speech
example. Its operators differ in two places: a SignalFramer keeps the last 10 ms of samples, so that firmware passes
each sample once, and one QUANTIZE replaces eight operators, which rounds a few features to the next step.

    SignalFramer                         windows of 30 ms, one every 20 ms
    SignalWindow                         a Hann window
    SignalFftAutoScale, SignalRfft       the spectrum, with as many bits as its samples have
    SignalEnergy                         squared magnitudes
    SignalFilterBank, ...SquareRoot      the energies of 40 bands, equally wide in mel, and their roots
    SignalFilterBankSpectralSubtraction  minus an estimate of the noise
    SignalPCAN                           automatic gain control
    SignalFilterBankLog, QUANTIZE        logarithms, as int8
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from training.quantize import Range
from training.tflite_file import Model, Operator, Tensor

RATE = 16000
HOP = 320
"""Samples that one run reads, 20 ms."""
CHANNELS = 40
FEATURES = Range(666 / 256 / 64, -128)
"""Logarithms from 0 to 10.4, in the steps of the networks that TensorFlow Lite Micro's examples use."""

_WINDOW = 480
_FFT = 512
_LOWEST, _HIGHEST = 125.0, 7500.0
"""Limits of the bands in Hz."""
_WEIGHT_BITS = 12
_SMOOTHING_BITS = 10
"""Fraction bits that spectral subtraction adds to energies."""
_SUBTRACTION_BITS = 14
"""Fraction bits of the factors of spectral subtraction."""
_CORRECTION_BITS = int(math.log2(_FFT)) - _WEIGHT_BITS // 2
_LOG_SCALE = 64
_STRENGTH, _OFFSET, _GAIN_BITS = 0.95, 80.0, 21
_SNR_BITS = 12

Integers = npt.NDArray[np.int64]


def _hann() -> Integers:
    steps = np.arange(_WINDOW)
    return np.floor((0.5 - 0.5 * np.cos(2 * np.pi * (steps + 0.5) / _WINDOW)) * (1 << _WEIGHT_BITS) + 0.5).astype(int)


def _mel(hertz: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)


def filter_bank() -> tuple[int, int, tuple[Integers, ...]]:
    """Return the range of bins that bands use, and the five tables of SignalFilterBank.

    Triangles overlap by half: a bin between the centres of two bands belongs to the lower one with one weight, and to
    the upper one with another.
    """
    edges = np.linspace(_mel(_LOWEST), _mel(_HIGHEST), CHANNELS + 2)
    bins = _mel(np.arange(_FFT // 2 + 1) * RATE / _FFT)
    between = np.searchsorted(edges, bins, side="right") - 1  # 0 below the first centre, CHANNELS above the last one
    starts = np.array([np.flatnonzero(between == band)[0] for band in range(CHANNELS + 1)])
    widths = np.array([(between == band).sum() for band in range(CHANNELS + 1)])
    used = np.arange(starts[0], starts[-1] + widths[-1])
    band = between[used]
    falling = (edges[band + 1] - bins[used]) / (edges[band + 1] - edges[band])
    lower, upper = ((part * (1 << _WEIGHT_BITS)).astype(int) for part in (falling, 1 - falling))
    return int(used[0]), int(used[-1]) + 1, (lower, upper, starts, starts - starts[0], widths)


def gains() -> Integers:
    """Return the table of SignalPCAN: gains of 0 and 1, then a parabola for each power of two."""

    def gain(level: int) -> int:
        exact = (1 << _GAIN_BITS) * (level / (1 << (_SMOOTHING_BITS - _CORRECTION_BITS)) + _OFFSET) ** -_STRENGTH
        return min(int(exact + 0.5), (1 << 15) - 1)

    table = [gain(0), gain(1)]
    for bits in range(2, 33):
        first, middle, last = 1 << (bits - 1), 3 << (bits - 2), (1 << bits) - (bits == 32)
        half, whole = gain(middle) - gain(first), gain(last) - gain(first)
        linear = 4 * half - whole
        table += [gain(first), linear, whole - linear, 0]
    return np.array(table[:-1])


def _factors(even: float, odd: float, floor: float) -> dict[str, int]:
    one = 1 << _SUBTRACTION_BITS
    return {
        "smoothing": int(even * one),
        "one_minus_smoothing": one - int(even * one),
        "alternate_smoothing": int(odd * one),
        "alternate_one_minus_smoothing": one - int(odd * one),
        "min_signal_remaining": int(floor * one),
        "smoothing_bits": _SMOOTHING_BITS,
        "spectral_subtraction_bits": _SUBTRACTION_BITS,
        "num_channels": CHANNELS,
        "clamping": False,
    }


def front_end() -> Model:
    """Return the network; it has no trained weights."""
    first, end, bank = filter_bank()
    names = ("bank/lower", "bank/upper", "bank/starts", "bank/weight_starts", "bank/widths")
    constants = {"window": _hann(), **dict(zip(names, bank, strict=True)), "gains": gains()}
    bins, bands = (_FFT // 2 + 1,), (CHANNELS,)
    tensors = (
        Tensor("samples", "int16", (HOP,)),
        Tensor("frame", "int16", (1, _WINDOW)),
        Tensor("full", "bool", ()),
        Tensor("windowed", "int16", (1, _WINDOW)),
        Tensor("line/shape", "int32", (1,), np.array([_WINDOW], np.int32)),
        Tensor("line", "int16", (_WINDOW,)),
        Tensor("scaled", "int16", (_WINDOW,)),
        Tensor("shift", "int32", ()),
        Tensor("spectrum", "int16", (_FFT + 2,)),
        Tensor("energies", "uint32", bins),
        Tensor("bands", "uint64", bands),
        Tensor("roots", "uint32", bands),
        Tensor("signal", "uint32", bands),
        Tensor("noise", "uint32", bands),
        Tensor("levelled", "uint32", bands),
        Tensor("logarithms", "int16", bands, None, (1 / _LOG_SCALE,)),
        Tensor("row/shape", "int32", (2,), np.array([1, CHANNELS], np.int32)),
        Tensor("row", "int16", (1, CHANNELS), None, (1 / _LOG_SCALE,)),
        Tensor("features", "int8", (1, CHANNELS), None, (FEATURES.scale,), FEATURES.zero_point),
        *(Tensor(name, "int16", value.shape, value.astype(np.int16)) for name, value in constants.items()),
    )
    correction, int16 = {"input_correction_bits": _CORRECTION_BITS}, {"T": 7}  # the number of int16 in TFLite's schema
    operators = (
        Operator("SignalFramer", ("samples",), ("frame", "full"), options={
            "frame_size": _WINDOW, "frame_step": HOP, "prefill": True}),
        Operator("SignalWindow", ("frame", "window"), ("windowed",), options={"shift": _WEIGHT_BITS}),
        Operator("RESHAPE", ("windowed", "line/shape"), ("line",), "ReshapeOptions"),
        Operator("SignalFftAutoScale", ("line",), ("scaled", "shift")),
        Operator("SignalRfft", ("scaled",), ("spectrum",), options={**int16, "fft_length": _FFT}),
        Operator("SignalEnergy", ("spectrum",), ("energies",), options={"start_index": first, "end_index": end}),
        Operator("SignalFilterBank", ("energies", *names), ("bands",), options={"num_channels": CHANNELS}),
        Operator("SignalFilterBankSquareRoot", ("bands", "shift"), ("roots",)),
        Operator("SignalFilterBankSpectralSubtraction", ("roots",), ("signal", "noise"), options=_factors(
            even=0.025, odd=0.06, floor=0.05)),
        Operator("SignalPCAN", ("signal", "noise", "gains"), ("levelled",), options={
            "snr_shift": _GAIN_BITS - _CORRECTION_BITS - _SNR_BITS}),
        Operator("SignalFilterBankLog", ("levelled",), ("logarithms",), options={
            **correction, "output_scale": _LOG_SCALE}),
        Operator("RESHAPE", ("logarithms", "row/shape"), ("row",), "ReshapeOptions"),
        Operator("QUANTIZE", ("row",), ("features",), "QuantizeOptions"),
    )  # fmt: skip
    return Model("front end", tensors, operators, "samples", "features")
