"""Recordings as inputs of a network: samples, or features that the audio front end computes from them.

Features are computed by the network of ``front_end`` with the compiler's references of its operators, so that they are
the integers that firmware computes with the same file, from a reset on. Firmware passes a hop of samples after the
other. Windows that begin before the first sample are left out: a network that reads 49 rows of 30 ms every 20 ms takes
50 hops, 1 s. A shorter recording is followed by silence; a longer one is refused.
"""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np

from mlfbuild.core import InputFileError, UsageError, printable
from mlfbuild.core.keys import duration_text, frequency_text
from mlfbuild.datasets.audio_front_end import BANDS, FrontEnd, front_end
from mlfbuild.datasets.cases import Array, case_shape, normalised
from mlfbuild.datasets.data_keys import DataKeys
from mlfbuild.library import TensorInfo
from mlfbuild.native import evaluate_runs, parse_model

_RATE, _WINDOW, _HOP = 16000, 30 * 10**6, 20 * 10**6
_CONVERT = "convert it, for example with ffmpeg -i old.wav -ac 1 -ar {rate} -sample_fmt s16 new.wav"


class AudioReader:
    """Reads .wav files for one input."""

    def __init__(self, keys: DataKeys, tensor: TensorInfo) -> None:
        """Prepare for one input; raises ``UsageError`` if the keys do not fit it."""
        self._keys, self._shape, self._dtype = keys, case_shape(tensor), tensor.dtype
        self._rate = keys.rate or _RATE
        self._samples = int(np.prod(self._shape))
        self._settings = self._front_end() if keys.features else None
        normalised(np.zeros(1), keys, 1)
        if self._settings is not None:
            rows = self._samples // self._settings.width
            self._early = -(-self._settings.window // self._settings.hop) - 1
            self._samples = (rows + self._early) * self._settings.hop
            content = front_end(self._settings, f"{keys.source}: features")
            self._graph = parse_model(content, "frontend", Path("frontend.tflite"))

    def _front_end(self) -> FrontEnd:
        lengths = {}
        for name, usual in (("window", _WINDOW), ("hop", _HOP)):
            duration = getattr(self._keys, name) or usual
            lengths[name], rest = divmod(duration * self._rate, 10**9)
            if rest:
                raise UsageError(
                    "data-window",
                    place=f"{self._keys.source}: {name}",
                    reason=f"{duration_text(duration)} are no whole number of samples at {frequency_text(self._rate)}",
                    hint="write a time of whole samples, such as 30 ms",
                )
        sizes = [size for size in self._shape if size > 1]
        # An input without a dimension of rows has rows of the usual width, such as the 1960 of micro_speech.
        width = sizes[1] if len(sizes) == 2 else BANDS
        if len(sizes) > 2 or self._samples % width:
            raise UsageError(
                "data-no-features",
                place=self._keys.source,
                reason=f"an input of shape {list(self._shape)} has no rows of features",
                hint="write a function or a .npz file",
            )
        return FrontEnd(self._keys.features, width, self._rate, lengths["window"], lengths["hop"])

    def read(self, path: Path) -> Array:
        """Return one recording in the shape of the input; raises ``InputFileError``."""
        samples = self._recording(path)
        # Less than a hop is no further row.
        spare = 0 if self._settings is None else self._settings.hop - 1
        if len(samples) > self._samples + spare:
            raise InputFileError(
                "data-recording-length",
                place=path,
                reason=f"the recording has {len(samples):,} samples, but the network takes {self._samples:,}",
                hint="cut it into pieces",
            )
        samples = np.pad(samples[: self._samples], (0, max(0, self._samples - len(samples))))
        if self._settings is None:
            if self._dtype == "int16" and not (self._keys.mean or self._keys.std):
                return samples.reshape(self._shape)
            return normalised(samples / 32768, self._keys, 1).reshape(self._shape)
        hops = samples.reshape(-1, self._settings.hop)
        rows = evaluate_runs(self._graph, {self._graph.inputs[0]: hops})[self._graph.outputs[0]][self._early :]
        scale = np.float32(self._settings.scale)
        real = (rows.astype(np.float32) - self._settings.zero_point) * scale
        return normalised(real, self._keys, 1).reshape(self._shape)

    def _recording(self, path: Path) -> Array:
        """Return the int16 samples of a file, which all must have the same form."""
        try:
            with wave.open(str(path), "rb") as file:
                form = (file.getnchannels(), file.getsampwidth(), file.getframerate())
                wanted = (1, 2, self._rate)
                if form != wanted:
                    raise InputFileError(
                        "data-recording-form",
                        place=path,
                        reason=f"the recording has {form[0]} x {8 * form[1]} bits at {frequency_text(form[2])}, not "
                        f"1 x 16 bits at {frequency_text(self._rate)}",
                        hint=_CONVERT.format(rate=self._rate),
                    )
                count = file.getnframes()
                # One more than is taken suffices to refuse a long file.
                data = file.readframes(min(count, 2 * self._samples + self._rate))
        except (wave.Error, EOFError, OSError, ValueError) as error:
            reason = printable(" ".join(str(error).split()) or type(error).__name__)
            raise InputFileError(
                "not-a-recording",
                place=path,
                reason=f"the .wav file cannot be read ({reason})",
                hint=_CONVERT.format(rate=self._rate),
            ) from None
        if len(data) < 2 * min(count, 2 * self._samples + self._rate):
            raise InputFileError("not-a-recording", place=path, reason="the file ends early", hint="replace the file")
        return np.frombuffer(data, "<i2")
