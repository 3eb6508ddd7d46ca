"""SignalRfft and SignalIrfft."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import DType, ops

_TYPES: Mapping[int, DType] = {
    TensorType.INT16: DType.INT16,
    TensorType.INT32: DType.INT32,
    TensorType.FLOAT32: DType.FLOAT32,
}


def _length(site: TfliteSite) -> int:
    dtype, length = site.numbers("T", "fft_length")
    if _TYPES.get(dtype) is not site.input(0).dtype:
        raise site.wrong(f"T {dtype} is not the type of {site.input(0)}, int16, int32 or float32")
    return length


KINDS: Mapping[str, OperatorKind] = {
    "SignalIrfft": OperatorKind(lambda site: ops.SignalIrfft(_length(site)), 1),
    "SignalRfft": OperatorKind(lambda site: ops.SignalRfft(_length(site)), 1),
}
