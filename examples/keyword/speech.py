"""A synthesiser of short words, so that this example needs no recordings: harmonics of a voice, and noise.

A word is a sequence of phones. A voiced phone has the first three formants of a vowel, nasal or glide, after Peterson
and Barney (1952); a voiceless one has a band of noise; a stop is silence and a burst of noise. Formants and loudness
move from phone to phone in 30 ms. Speakers differ in pitch, in the length of the vocal tract, and in their pace.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RATE = 16000
Samples = npt.NDArray[np.float64]

_STEPS = 200
"""Per second, for everything but samples."""
_GLIDE = 6
"""Steps in which one phone becomes the next."""
_BANDWIDTHS = (60.0, 90.0, 150.0, 250.0)
_FOURTH = 3500.0
"""The fourth formant in Hz, which all phones share."""


@dataclass(frozen=True)
class Phone:
    """``voice`` and ``noise`` are loudnesses, ``formants`` and ``band`` are in Hz."""

    seconds: float
    voice: float = 0.0
    formants: tuple[float, float, float] = (500.0, 1500.0, 2500.0)
    noise: float = 0.0
    band: tuple[float, float] = (3000.0, 6000.0)


PHONES = {
    "i": Phone(0.12, 1.0, (270, 2290, 3010)),
    "e": Phone(0.13, 1.0, (530, 1840, 2480)),
    "a": Phone(0.14, 1.0, (730, 1090, 2440)),
    "o": Phone(0.14, 1.0, (570, 840, 2410)),
    "u": Phone(0.12, 1.0, (300, 870, 2240)),
    "A": Phone(0.11, 1.0, (640, 1190, 2390)),
    "j": Phone(0.06, 0.8, (270, 2200, 3000)),
    "l": Phone(0.07, 0.7, (360, 1300, 2800)),
    "r": Phone(0.07, 0.7, (330, 1060, 1400)),
    "n": Phone(0.08, 0.4, (250, 1700, 2600)),
    "m": Phone(0.08, 0.4, (250, 1100, 2200)),
    "s": Phone(0.13, noise=0.30, band=(4000, 7500)),
    "S": Phone(0.13, noise=0.30, band=(2000, 5500)),
    "f": Phone(0.10, noise=0.10, band=(1500, 7500)),
    "h": Phone(0.06, noise=0.10, band=(500, 2500)),
    "_": Phone(0.06),
    "t": Phone(0.03, noise=0.35, band=(3000, 7000)),
    "p": Phone(0.03, noise=0.20, band=(500, 2000)),
    "k": Phone(0.03, noise=0.30, band=(1500, 3500)),
}


@dataclass(frozen=True)
class Speaker:
    """``tract`` scales formants, ``pace`` durations."""

    pitch: float
    tract: float
    pace: float

    @classmethod
    def draw(cls, random: np.random.Generator) -> Speaker:
        """Return a speaker between a low and a high voice."""
        height = random.uniform()
        pitch = 95 * 2.2**height * random.uniform(0.9, 1.1)
        return cls(pitch, 0.92 + 0.24 * height + random.uniform(-0.03, 0.03), random.uniform(0.85, 1.2))


def _smooth(values: Samples) -> Samples:
    """Return moving averages along the first axis."""
    padded = np.pad(values, ((_GLIDE // 2, _GLIDE - 1 - _GLIDE // 2), (0, 0)), "edge")
    return np.lib.stride_tricks.sliding_window_view(padded, _GLIDE, axis=0).mean(axis=-1)


def _resonances(frequencies: Samples, formants: Samples) -> Samples:
    """Return the gains of all formants in a row for ``frequencies`` [steps, harmonics]."""
    gains = np.ones_like(frequencies)
    for number, bandwidth in enumerate(_BANDWIDTHS):
        centre = formants[:, number : number + 1]
        gains *= centre**2 / np.hypot(centre**2 - frequencies**2, bandwidth * frequencies)
    return gains


def _band(noise: Samples, low: float, high: float) -> Samples:
    """Return noise of the power 1 between two frequencies."""
    spectrum = np.fft.rfft(noise)
    frequencies = np.fft.rfftfreq(len(noise), 1 / RATE)
    spectrum *= 1 / (1 + np.exp(-(frequencies - low) / 150)) / (1 + np.exp((frequencies - high) / 150))
    filtered = np.fft.irfft(spectrum, len(noise))
    return filtered / np.sqrt((filtered**2).mean())


def speak(word: str, speaker: Speaker, random: np.random.Generator) -> Samples:
    """Return the samples of a word; its loudest vowel has about the power 1."""
    phones = [PHONES[name] for name in word]
    lengths = [max(2, round(p.seconds * speaker.pace * random.uniform(0.85, 1.15) * _STEPS)) for p in phones]
    rows = [(p.voice, *(f * speaker.tract * random.uniform(0.95, 1.05) for f in (*p.formants, _FOURTH)))
            for p in phones]  # fmt: skip
    control = _smooth(np.pad(np.repeat(np.array(rows), lengths, axis=0), ((0, _GLIDE), (0, 0)), "edge"))
    loudness, formants = control[:, :1] * (np.arange(len(control)) < sum(lengths))[:, np.newaxis], control[:, 1:]
    steps = np.arange(len(control))
    times = np.arange(len(control) * RATE // _STEPS) * _STEPS / RATE
    wobble = 1 + 0.02 * np.interp(times, steps, _smooth(random.normal(size=(len(steps), 1)))[:, 0])
    pitch = speaker.pitch * (1.1 - 0.2 * times / len(steps)) * wobble
    phase = 2 * np.pi * np.cumsum(pitch) / RATE

    harmonics = np.arange(1, int(5000 / speaker.pitch))
    frequencies = np.interp(steps, times, pitch)[:, np.newaxis] * harmonics
    amplitudes = _smooth(loudness) * _resonances(frequencies, formants) / harmonics
    samples = np.zeros(len(times))
    for number, harmonic in enumerate(harmonics):
        samples += np.interp(times, steps, amplitudes[:, number]) * np.sin(harmonic * phase)

    first = 0
    for phone, length in zip(phones, lengths, strict=True):
        if phone.noise:
            envelope = phone.noise * ((steps >= first) & (steps < first + length)).astype(float)
            noise = _band(random.normal(size=len(times)), *phone.band)
            samples += np.interp(times, steps, _smooth(_smooth(envelope[:, np.newaxis]))[:, 0]) * noise
        first += length
    return samples


def background(length: int, random: np.random.Generator) -> Samples:
    """Return noise of the power 1 for ``length`` samples, with more or less of its low frequencies, and a hum."""
    spectrum = np.fft.rfft(random.normal(size=length))
    frequencies = np.fft.rfftfreq(length, 1 / RATE)
    spectrum /= np.maximum(frequencies, 50.0) ** random.uniform(0.0, 1.0)
    noise = np.fft.irfft(spectrum, length)
    noise /= np.sqrt((noise**2).mean())
    hum = np.sin(2 * np.pi * random.uniform(90, 130) * np.arange(length) / RATE)
    return noise + random.uniform(0.0, 0.5) * hum


def mu_law(samples: npt.NDArray[np.integer]) -> npt.NDArray[np.uint8]:
    """Return int16 samples as the bytes of G.711's mu-law."""
    magnitude = np.minimum(np.abs(samples.astype(np.int32)) + 132, 32767)
    exponent = np.floor(np.log2(magnitude)).astype(np.int32) - 7
    mantissa = (magnitude >> (exponent + 3)) & 15
    return (~((samples < 0) << 7 | exponent << 4 | mantissa) & 255).astype(np.uint8)


def from_mu_law(coded: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
    """Return the int16 samples of mu-law bytes; the firmware computes the same."""
    inverted = ~coded.astype(np.int32) & 255
    magnitude = (((inverted & 15) << 3) + 132 << (inverted >> 4 & 7)) - 132
    return np.where(inverted & 128, -magnitude, magnitude).astype(np.int16)
