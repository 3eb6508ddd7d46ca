"""The audio front end: a hop of samples -> one row of features, as a .tflite file.

The constants are those of `audio_preprocessor_int8.tflite`, the front end of TensorFlow Lite Micro's micro_speech
example. Its operators differ in two places: a SignalFramer keeps the samples by which windows overlap, so that firmware
passes each sample once, and one QUANTIZE replaces eight operators, which rounds a few features to the next step.

    SignalFramer                         windows of 30 ms, one every 20 ms
    SignalWindow                         a Hann window
    SignalFftAutoScale, SignalRfft       the spectrum, with as many bits as its samples have
    SignalEnergy                         squared magnitudes
    SignalFilterBank, ...SquareRoot      the energies of bands, equally wide in mel, and their roots
    SignalFilterBankSpectralSubtraction  minus an estimate of the noise
    SignalPCAN                           automatic gain control
    SignalFilterBankLog                  logarithms, as int16
    FULLY_CONNECTED                      mfcc: the first coefficients of their cosine transform (DCT-II, orthonormal)
    QUANTIZE                             as int8
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlfbuild.core import UsageError
from mlfbuild.datasets.tflite_file import FileOperator, FileTensor, NetworkFile, write_tflite

BANDS = 40
"""Bands from which coefficients of mfcc are computed."""
_STEPS = {"log-mel": (666 / 256 / 64, -128), "mfcc": (0.375, -48)}
"""Scale and zero point of the features: 0 to 10.4, the steps of the networks that TensorFlow Lite Micro's examples use,
and -30 to 65.6, what coefficients of such logarithms can be."""
_COEFFICIENT = 1 / 256
"""The scale of coefficients as int16."""
_LOWEST, _HIGHEST = 125.0, 15 / 32
"""Limits of the bands: in Hz, and as part of the sampling rate."""
_WEIGHT_BITS = 12
_SMOOTHING_BITS = 10
"""Fraction bits that spectral subtraction adds to energies."""
_SUBTRACTION_BITS = 14
"""Fraction bits of the factors of spectral subtraction."""
_LOG_SCALE = 64
_STRENGTH, _OFFSET, _GAIN_BITS = 0.95, 80.0, 21
_SNR_BITS = 12

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FrontEnd:
    """The features of a front end; ``window`` and ``hop`` are in samples, ``width`` is the length of a row."""

    features: str = "log-mel"
    width: int = 40
    rate: int = 16000
    window: int = 480
    hop: int = 320

    @property
    def bands(self) -> int:
        """The number of mel bands."""
        return self.width if self.features == "log-mel" else BANDS

    @property
    def fft(self) -> int:
        """The length of the transform: the first power of two from the window on."""
        # SignalRfft takes no shorter transform than 64.
        return max(64, 1 << (self.window - 1).bit_length())

    @property
    def correction(self) -> int:
        """Bits by which energies grow before their logarithm."""
        # As in frontend.c of TensorFlow Lite: a root has been taken, so that half of the bits of the weights count.
        return self.fft.bit_length() - 1 - _WEIGHT_BITS // 2

    @property
    def scale(self) -> float:
        """The number that a step of the int8 features stands for."""
        return _STEPS[self.features][0]

    @property
    def zero_point(self) -> int:
        """The int8 of the feature 0."""
        return _STEPS[self.features][1]


def front_end(settings: FrontEnd, place: object = "front end") -> bytes:
    """Return the .tflite file of a front end: ``hop`` samples of int16 to a row of ``width`` features of int8.

    It has no trained weights, and keeps a state: reset it where a recording begins. Raises ``UsageError`` at ``place``
    for settings that no front end has.
    """
    _check(settings, place)
    first, end, bank = filter_bank(settings)
    names = ("bank/lower", "bank/upper", "bank/starts", "bank/weight_starts", "bank/widths")
    constants = {"window": _hann(settings.window), **dict(zip(names, bank, strict=True)), "gains": _gains(settings)}
    tensors = (
        *_tensors(settings),
        *(FileTensor(name, "int16", value.shape, value.astype(np.int16)) for name, value in constants.items()),
    )
    operators = tuple(_operators(settings, first, end, names))
    return write_tflite(NetworkFile("front end", tensors, operators, "samples", "features"))


def _check(settings: FrontEnd, place: object) -> None:
    reason = ""
    if not 0 < settings.hop <= settings.window <= 1 << 15:
        reason = "the hop must be at most as long as the window, and the window at most 32,768 samples"
    elif settings.features == "mfcc" and not 0 < settings.width <= BANDS:
        reason = f"there are 1 to {BANDS} coefficients"
    elif (_between(settings)[:, np.newaxis] == np.arange(settings.bands + 1)).any(axis=0).sum() <= settings.bands:
        reason = f"{settings.bands} bands are too narrow for a window of {settings.window} samples"
    if reason:
        hint = "use a longer window, a shorter hop, or a network with fewer features"
        raise UsageError("front-end-unfit", place=place, reason=reason, hint=hint)


def _hann(window: int) -> Integers:
    steps = np.arange(window)
    return np.floor((0.5 - 0.5 * np.cos(2 * np.pi * (steps + 0.5) / window)) * (1 << _WEIGHT_BITS) + 0.5).astype(int)


def _mel(hertz: npt.ArrayLike) -> npt.NDArray[np.float64]:
    return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)


def _edges(settings: FrontEnd) -> npt.NDArray[np.float64]:
    return np.linspace(_mel(_LOWEST), _mel(_HIGHEST * settings.rate), settings.bands + 2)


def _bins(settings: FrontEnd) -> npt.NDArray[np.float64]:
    return _mel(np.arange(settings.fft // 2 + 1) * settings.rate / settings.fft)


def _between(settings: FrontEnd) -> Integers:
    """Return the band below each bin: 0 below the first centre, the number of bands above the last one."""
    return np.searchsorted(_edges(settings), _bins(settings), side="right") - 1


def filter_bank(settings: FrontEnd) -> tuple[int, int, tuple[Integers, ...]]:
    """Return the range of bins that bands use, and the five tables of SignalFilterBank.

    Triangles overlap by half: a bin between the centres of two bands belongs to the lower one with one weight, and to
    the upper one with another.
    """
    edges, bins, between, bands = _edges(settings), _bins(settings), _between(settings), settings.bands
    starts = np.array([np.flatnonzero(between == band)[0] for band in range(bands + 1)])
    widths = np.array([(between == band).sum() for band in range(bands + 1)])
    used = np.arange(starts[0], starts[-1] + widths[-1])
    band = between[used]
    falling = (edges[band + 1] - bins[used]) / (edges[band + 1] - edges[band])
    lower, upper = ((part * (1 << _WEIGHT_BITS)).astype(int) for part in (falling, 1 - falling))
    return int(used[0]), int(used[-1]) + 1, (lower, upper, starts, starts - starts[0], widths)


def _gains(settings: FrontEnd) -> Integers:
    """Return the table of SignalPCAN: gains of 0 and 1, then a parabola for each power of two."""

    def gain(level: int) -> int:
        exact = (1 << _GAIN_BITS) * (level / (1 << (_SMOOTHING_BITS - settings.correction)) + _OFFSET) ** -_STRENGTH
        return min(int(exact + 0.5), (1 << 15) - 1)

    table = [gain(0), gain(1)]
    # 2**32 does not fit in the level, which is a uint32, so that the last parabola ends one before it.
    for bits in range(2, 33):
        first, middle, last = 1 << (bits - 1), 3 << (bits - 2), (1 << bits) - (bits == 32)
        half, whole = gain(middle) - gain(first), gain(last) - gain(first)
        linear = 4 * half - whole
        table += [gain(first), linear, whole - linear, 0]
    return np.array(table[:-1])


def _factors(bands: int, even: float, odd: float, floor: float) -> dict[str, int]:
    one = 1 << _SUBTRACTION_BITS
    return {
        "smoothing": int(even * one),
        "one_minus_smoothing": one - int(even * one),
        "alternate_smoothing": int(odd * one),
        "alternate_one_minus_smoothing": one - int(odd * one),
        "min_signal_remaining": int(floor * one),
        "smoothing_bits": _SMOOTHING_BITS,
        "spectral_subtraction_bits": _SUBTRACTION_BITS,
        "num_channels": bands,
        "clamping": False,
    }


def _tensors(settings: FrontEnd) -> Iterator[FileTensor]:
    window, bands, bins = settings.window, (settings.bands,), (settings.fft // 2 + 1,)
    yield FileTensor("samples", "int16", (settings.hop,))
    yield FileTensor("frame", "int16", (1, window))
    yield FileTensor("full", "bool", ())
    yield FileTensor("windowed", "int16", (1, window))
    yield FileTensor("line/shape", "int32", (1,), np.array([window], np.int32))
    yield FileTensor("line", "int16", (window,))
    yield FileTensor("scaled", "int16", (window,))
    yield FileTensor("shift", "int32", ())
    yield FileTensor("spectrum", "int16", (settings.fft + 2,))
    yield FileTensor("energies", "uint32", bins)
    yield FileTensor("bands", "uint64", bands)
    for name in ("roots", "signal", "noise", "levelled"):
        yield FileTensor(name, "uint32", bands)
    yield FileTensor("logarithms", "int16", bands, None, (1 / _LOG_SCALE,))
    yield FileTensor("row/shape", "int32", (2,), np.array([1, *bands], np.int32))
    yield FileTensor("row", "int16", (1, *bands), None, (1 / _LOG_SCALE,))
    if settings.features == "mfcc":
        cosines = _cosines(settings.width)
        scale = float(np.abs(cosines).max() / 127)
        rounded = np.rint(cosines / scale).astype(np.int8)
        yield FileTensor("cosines", "int8", cosines.shape, rounded, (scale,))
        yield FileTensor("coefficients", "int16", (1, settings.width), None, (_COEFFICIENT,))
    yield FileTensor("features", "int8", (1, settings.width), None, (settings.scale,), settings.zero_point)


def _cosines(coefficients: int) -> npt.NDArray[np.float64]:
    """Return the matrix of the orthonormal DCT-II, [coefficients, bands]."""
    rows = np.arange(coefficients)[:, np.newaxis]
    table = np.sqrt(2 / BANDS) * np.cos(np.pi * rows * (np.arange(BANDS) + 0.5) / BANDS)
    table[0] /= np.sqrt(2)
    return np.asarray(table)


def _operators(settings: FrontEnd, first: int, end: int, names: tuple[str, ...]) -> Iterator[FileOperator]:
    correction, bands = settings.correction, settings.bands
    int16 = {"T": 7}  # the number of int16 in TFLite's schema
    yield FileOperator("SignalFramer", ("samples",), ("frame", "full"), options={
        "frame_size": settings.window, "frame_step": settings.hop, "prefill": True})  # fmt: skip
    yield FileOperator("SignalWindow", ("frame", "window"), ("windowed",), options={"shift": _WEIGHT_BITS})
    yield FileOperator("RESHAPE", ("windowed", "line/shape"), ("line",), "ReshapeOptions")
    yield FileOperator("SignalFftAutoScale", ("line",), ("scaled", "shift"))
    yield FileOperator("SignalRfft", ("scaled",), ("spectrum",), options={**int16, "fft_length": settings.fft})
    yield FileOperator("SignalEnergy", ("spectrum",), ("energies",), options={"start_index": first, "end_index": end})
    yield FileOperator("SignalFilterBank", ("energies", *names), ("bands",), options={"num_channels": bands})
    yield FileOperator("SignalFilterBankSquareRoot", ("bands", "shift"), ("roots",))
    yield FileOperator("SignalFilterBankSpectralSubtraction", ("roots",), ("signal", "noise"), options=_factors(
        bands, even=0.025, odd=0.06, floor=0.05))  # fmt: skip
    yield FileOperator("SignalPCAN", ("signal", "noise", "gains"), ("levelled",), options={
        "snr_shift": _GAIN_BITS - correction - _SNR_BITS})  # fmt: skip
    yield FileOperator("SignalFilterBankLog", ("levelled",), ("logarithms",), options={
        "input_correction_bits": correction, "output_scale": _LOG_SCALE})  # fmt: skip
    yield FileOperator("RESHAPE", ("logarithms", "row/shape"), ("row",), "ReshapeOptions")
    if settings.features == "mfcc":
        yield FileOperator("FULLY_CONNECTED", ("row", "cosines"), ("coefficients",), "FullyConnectedOptions")
    last = "coefficients" if settings.features == "mfcc" else "row"
    yield FileOperator("QUANTIZE", (last,), ("features",), "QuantizeOptions")
