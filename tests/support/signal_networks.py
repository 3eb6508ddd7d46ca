"""Networks of one custom operator of TensorFlow Lite Micro for signal processing."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from tflite.TensorType import TensorType

from support.drawing import Drawing
from support.tflite_builder import Network


def _samples(d: Drawing, size: int) -> int:
    """Add an input of int16 without scale, at times quiet."""
    source = d.input((size,), dtype="int16")
    d.values[-1] = d.values[-1] >> d.choice(0, 0, 3, 9, 15)
    return source


def _window(d: Drawing) -> None:
    size = d.size(1, 9)
    source = d.input((*d.shape(0, 2), size), dtype="int16")
    weights = d.network.constant(d.random.integers(-(1 << 15), 1 << 15, size).astype(np.int16))
    output = d.network.activation(d.network.tensors[source].shape, dtype="int16")
    d.network.custom("SignalWindow", [source, weights], [output], shift=d.size(0, 31))


def _fft_auto_scale(d: Drawing) -> None:
    source = _samples(d, d.size(1, 12))
    if d.choice(True, False, False):
        d.values[-1][d.size(0, len(d.values[-1]) - 1)] = -(1 << 15)
    outputs = [d.network.activation(d.values[-1].shape, dtype="int16"), d.network.activation((), dtype="int32")]
    d.network.custom("SignalFftAutoScale", [source], outputs)


FOURIER_TYPES = {"int16": TensorType.INT16, "int32": TensorType.INT32, "float32": TensorType.FLOAT32}


def _fourier(d: Drawing, name: str, source: Sequence[int], output: Sequence[int], length: int) -> None:
    index = d.input(tuple(source), dtype=d.dtype)
    if d.dtype != "float32":
        limits, quiet = np.iinfo(d.dtype), d.choice(0, 0, 5)
        values = d.random.integers(limits.min, limits.max, d.values[-1].shape, endpoint=True)
        extreme = d.random.choice([limits.min, limits.max], values.shape)
        d.values[-1] = (extreme if d.choice(True, False, False) else values >> quiet).astype(d.dtype)
    result = d.network.activation(tuple(output), dtype=d.dtype)
    d.network.custom(name, [index], [result], T=FOURIER_TYPES[d.dtype], fft_length=length)


def _length(d: Drawing) -> int:
    return int(d.choice(4, 6, 8, 10, 16, 24, 32, 50, 60, 64, 90, 128))


def _rfft(d: Drawing) -> None:
    length, rows = _length(d), d.shape(0, 1)
    _fourier(d, "SignalRfft", (*rows, d.size(1, length)), (*rows, length + 2), length)


def _irfft(d: Drawing) -> None:
    length, rows = _length(d), d.shape(0, 1)
    _fourier(d, "SignalIrfft", (*rows, length + 2), (*rows, length), length)


def _spectrum(d: Drawing, name: str) -> None:
    """Add an RFFT2D whose result may be reshaped, and the operator ``name`` that makes real numbers from it."""
    net, height, width = d.network, d.choice(1, 1, 2, 4, 8), d.choice(4, 8, 16)
    rows = 1 if height == 1 else d.size(1, height + 2)
    source = d.input((*d.shape(0, 2), rows, d.size(3, width + 2)), dtype="float32")
    spectra = net.tensor((*net.tensors[source].shape[:-2], height, width // 2 + 1), "complex64")
    net.operator("RFFT2D", [source, net.integers((height, width))], spectra, "Rfft2dOptions")
    spectra = d.choice(_kept, _expanded, _squeezed, _reshaped)(net, spectra)
    net.operator(name, [spectra], net.activation(net.tensors[spectra].shape))


def _kept(_net: Network, source: int) -> int:
    return source


def _expanded(net: Network, source: int) -> int:
    output = net.tensor((*net.tensors[source].shape, 1), "complex64")
    return net.operator("EXPAND_DIMS", [source, net.integers(-1)], output, "ExpandDimsOptions")


def _squeezed(net: Network, source: int) -> int:
    output = net.tensor([size for size in net.tensors[source].shape if size != 1], "complex64")
    return net.operator("SQUEEZE", [source], output, "SqueezeOptions")


def _reshaped(net: Network, source: int) -> int:
    output = net.tensor([int(np.prod(net.tensors[source].shape))], "complex64")
    return net.operator("RESHAPE", [source, net.integers([-1])], output, "ReshapeOptions")


def _part(name: str) -> Callable[[Drawing], None]:
    return lambda d: _spectrum(d, name)


def _energy(d: Drawing) -> None:
    count = d.size(1, 12)
    source, output = _samples(d, 2 * count), d.network.activation((count,), dtype="uint32")
    d.network.custom("SignalEnergy", [source], [output], start_index=0, end_index=count)


def _filter_bank(d: Drawing) -> None:
    channels = d.size(1, 6)
    widths = d.random.integers(0, 5, channels + 1)
    size, count = int(widths.max()) + d.size(1, 5), int(widths.sum()) + 1
    source = d.input((size,), dtype="uint32")
    starts, firsts = d.random.integers(0, size - widths + 1), d.random.integers(0, count - widths + 1)
    weights = [d.random.integers(-(1 << 15), 1 << 15, count) for _ in range(2)]
    constants = [d.network.integers(values, "int16") for values in (*weights, starts, firsts, widths)]
    output = d.network.activation((channels,), dtype="uint64")
    d.network.custom("SignalFilterBank", [source, *constants], [output], num_channels=channels)


def _square_root(d: Drawing) -> None:
    source = d.input((d.size(1, 12),), dtype="uint64")
    if d.choice(True, False):
        near = np.array([0xFFFF**2, 0xFFFFFFFF**2, 1 << 32, (1 << 64) - 1], np.uint64)
        d.values[-1] = np.asarray(d.random.choice(near, d.values[-1].shape) - d.values[-1] % np.uint64(3))
    bits = d.network.input((), dtype="int32")
    d.values.append(np.array(d.size(0, 31), np.int32))
    output = d.network.activation(d.values[0].shape, dtype="uint32")
    d.network.custom("SignalFilterBankSquareRoot", [source, bits], [output])


def _pcan(d: Drawing) -> None:
    shape = (d.size(1, 12),)
    sources = [d.input(shape, dtype="uint32") for _ in range(2)]
    gains = d.network.constant(d.random.integers(-(1 << 15), 1 << 15, 125).astype(np.int16))
    output = d.network.activation(shape, dtype="uint32")
    d.network.custom("SignalPCAN", [*sources, gains], [output], snr_shift=d.size(0, 40))


def _log(d: Drawing) -> None:
    shape = (d.size(1, 12),)
    source, output = d.input(shape, dtype="uint32"), d.network.activation(shape, dtype="int16")
    options = {"input_correction_bits": d.size(0, 31), "output_scale": d.choice(1600, 32768, 70000, -5)}
    d.network.custom("SignalFilterBankLog", [source], [output], **options)


def draw_delay(d: Drawing) -> None:
    """Add a SignalDelay that is shorter or longer than its input."""
    shape = d.shape(1, 3, 6)
    source, output = d.input(shape, dtype="int16"), d.network.activation(shape, dtype="int16")
    d.network.custom("SignalDelay", [source], [output], delay_length=d.size(1, 14))


def draw_framer(d: Drawing) -> None:
    """Add a SignalFramer, and zeros where TensorFlow Lite Micro does not write frames."""
    step, frames, rows = d.size(1, 5), d.size(1, 3), d.shape(0, 2)
    prefill = d.choice(True, False)
    size = d.size(step if prefill else 1, 14)
    source = d.input((*rows, frames * step), dtype="int16")
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    _valid(d, "SignalFramer", source, (*rows, frames, size), options)


def draw_stacker(d: Drawing) -> None:
    """Add a SignalStacker, and zeros where TensorFlow Lite Micro does not write features."""
    channels, left, right = d.size(1, 5), d.size(0, 3), d.size(0, 3)
    frames = left + 1 + right
    source = d.input((channels,), dtype="int16")
    options = {
        "num_channels": channels, "stacker_left_context": left, "stacker_right_context": right,
        "stacker_step": d.size(1, frames),
    }  # fmt: skip
    _valid(d, "SignalStacker", source, (channels * frames,), options)


def _valid(d: Drawing, name: str, source: int, shape: tuple[int, ...], options: Mapping[str, int]) -> None:
    """Add a custom operator with two outputs, and select the first only if the second one is true."""
    written, valid = d.network.activation(shape, dtype="int16"), d.network.activation((), dtype="bool")
    d.network.custom(name, [source], [written, valid], **options)
    zeros = d.network.constant(np.zeros(shape, np.int16))
    output = d.network.activation(shape, dtype="int16")
    d.network.operator("SELECT_V2", [valid, written, zeros], output, "SelectV2Options")


def draw_overlap_add(d: Drawing, dtype: str) -> None:
    """Add a SignalOverlapAdd."""
    *rows, frames, size = d.shape(2, 4, 6)
    step, code = d.size(1, size), {"int16": TensorType.INT16, "float32": TensorType.FLOAT32}[dtype]
    source = d.input((*rows, frames, size), dtype=dtype)
    output = d.network.activation((*rows, frames * step), dtype=dtype)
    d.network.custom("SignalOverlapAdd", [source], [output], T=code, frame_step=step)


def draw_spectral_subtraction(d: Drawing) -> None:
    """Add a SignalFilterBankSpectralSubtraction, and also write its estimate of the noise."""
    channels = d.size(1, 8)
    _spectral_subtraction(d, d.input((channels,), dtype="uint32"), channels)


def draw_features(d: Drawing) -> None:
    """Add the operators from the energies of a spectrum to the logarithms of its bands."""
    _filter_bank(d)
    (banks,) = d.network.operators[-1].outputs
    channels = d.network.tensors[banks].shape[0]
    roots, gained = (d.network.activation((channels,), dtype="uint32") for _ in range(2))
    d.network.custom("SignalFilterBankSquareRoot", [banks, d.network.integers(d.size(0, 20))], [roots])
    energies, noise = _spectral_subtraction(d, roots, channels)
    gains = d.network.constant(d.random.integers(0, 1 << 15, 125).astype(np.int16))
    d.network.custom("SignalPCAN", [energies, noise, gains], [gained], snr_shift=d.size(0, 20))
    output = d.network.activation((channels,), dtype="int16")
    d.network.custom("SignalFilterBankLog", [gained], [output], input_correction_bits=3, output_scale=1600)


def _spectral_subtraction(d: Drawing, source: int, channels: int) -> list[int]:
    bits = d.choice(0, 14, 14, 31, 40)
    outputs = [d.network.activation((channels,), dtype="uint32") for _ in range(2)]
    factors = ("smoothing", "one_minus_smoothing", "alternate_smoothing", "alternate_one_minus_smoothing")
    options = {name: d.size(-5, 1 << d.choice(2, 14, 30)) for name in (*factors, "min_signal_remaining")}
    return d.network.custom(
        "SignalFilterBankSpectralSubtraction", [source], outputs, **options, num_channels=channels,
        clamping=d.choice(True, False), smoothing_bits=d.choice(0, 10, 31), spectral_subtraction_bits=bits,
    )  # fmt: skip


_SPECTRA = ("COMPLEX_ABS", "IMAG", "REAL")

OPERATORS: Mapping[str, Callable[[Drawing], None]] = {
    **{name: _part(name) for name in _SPECTRA},
    "RFFT2D": _part("REAL"),
    "SignalEnergy": _energy,
    "SignalFftAutoScale": _fft_auto_scale,
    "SignalFilterBank": _filter_bank,
    "SignalFilterBankLog": _log,
    "SignalFilterBankSquareRoot": _square_root,
    "SignalIrfft": _irfft,
    "SignalPCAN": _pcan,
    "SignalRfft": _rfft,
    "SignalWindow": _window,
}

TYPES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("SignalEnergy", "SignalFftAutoScale", "SignalWindow"), ("int16",)),
    **dict.fromkeys(("SignalFilterBank", "SignalFilterBankLog", "SignalPCAN"), ("uint32",)),
    **dict.fromkeys(("SignalIrfft", "SignalRfft"), tuple(FOURIER_TYPES)),
    "SignalFilterBankSquareRoot": ("uint64",),
}
"""The element types of the first input."""

LITERT: Mapping[str, Sequence[str]] = dict.fromkeys((*_SPECTRA, "RFFT2D"), ("float32",))
"""Operators that LiteRT supports and TensorFlow Lite Micro does not, with their types."""
