"""SignalRfft."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.TensorType import TensorType

from mlfbuild.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.frontends.tflite.operators.site import TfliteSite
from mlfbuild.graph import ops


def _rfft(site: TfliteSite) -> ops.SignalRfft:
    dtype, length = site.numbers("T", "fft_length")
    if dtype != TensorType.INT16:
        raise site.unsupported(f"T {dtype} is not that of int16")
    return ops.SignalRfft(length)


KINDS: Mapping[str, OperatorKind] = {"SignalRfft": OperatorKind(_rfft, 1)}
