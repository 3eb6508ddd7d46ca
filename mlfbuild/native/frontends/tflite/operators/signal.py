"""The operators of TensorFlow Lite Micro's signal library, which are custom operators with numbers as options."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite.operators.site import TfliteRow, TfliteSite
from mlfbuild.native.graph import DType, Operator, ops
from mlfbuild.native.graph.bases import alternatives

_MOST = 1 << 20
"""Elements of a state; more do not fit into the memory of any microcontroller."""
_TYPES: Mapping[int, DType] = {
    TensorType.INT16: DType.INT16,
    TensorType.INT32: DType.INT32,
    TensorType.FLOAT32: DType.FLOAT32,
}
_SUBTRACTION = (
    "alternate_one_minus_smoothing", "alternate_smoothing", "clamping", "min_signal_remaining", "num_channels",
    "one_minus_smoothing", "smoothing", "smoothing_bits", "spectral_subtraction_bits",
)  # fmt: skip
_Shapes = tuple[tuple[int, ...], ...]


def _typed(make: Callable[[int], Operator], *types: DType) -> Callable[[TfliteSite, int, int], Operator]:
    """Return a reader of the options T, which must be the type of the input, one of ``types``, and a number."""

    def read(site: TfliteSite, code: int, number: int) -> Operator:
        if _TYPES.get(code) is not site.input(0).dtype or site.input(0).dtype not in types:
            raise site.wrong(f"T {code} is not the type of {site.input(0)}, {alternatives(types)}")
        return make(number)

    return read


def _spectral_subtraction(
    _: TfliteSite, odd_rest: int, odd_smoothing: int, clamping: int, floor: int, channels: int, rest: int,
    smoothing: int, smoothing_bits: int, bits: int,
) -> Operator:  # fmt: skip
    return ops.SignalFilterBankSpectralSubtraction(
        smoothing, rest, odd_smoothing, odd_rest, floor, smoothing_bits, bits, bool(clamping), channels
    )


def _delayed(site: TfliteSite, delay: ops.SignalDelay) -> _Shapes:
    """Return the shape of the samples that a later run writes."""
    rows = site.output().shape[:-1]
    # The product of the rows is limited as well, since a small file may declare many.
    longest = _MOST // math.prod(rows)
    if not 1 <= delay.length <= longest:
        raise site.unsupported(f"delay_length {delay.length} is not between 1 and {longest}")
    return ((*rows, delay.length),)


def _framed(site: TfliteSite, framer: ops.SignalFramer) -> _Shapes:
    if framer.step < 1:
        raise site.wrong(f"frame_step {framer.step} is not positive")
    return _kept(site, math.prod(site.input(0).shape[:-1]), framer.kept)


def _kept(site: TfliteSite, rows: int, kept: int) -> _Shapes:
    """Return the shape of ``kept`` elements of each row, and a number."""
    if not (rows > 0 and 0 <= kept * rows <= _MOST):
        raise site.unsupported(f"its options need a state of {rows} x {kept} elements, not one of 0 to {_MOST}")
    return ((rows * kept + 1,),)


def _added(site: TfliteSite, _add: Operator) -> _Shapes:
    *rows, _, size = (1, 1, *site.input(0).shape)
    return ((*rows[2:], size),)


ROWS: Mapping[str, TfliteRow] = {
    "SignalDelay": TfliteRow(
        lambda _, length: ops.SignalDelay(length), numbers=("delay_length",), made_states=_delayed
    ),
    "SignalEnergy": TfliteRow(
        lambda _, end, start: ops.SignalEnergy(start, end), numbers=("end_index", "start_index")
    ),
    "SignalFilterBank": TfliteRow(lambda _, count: ops.SignalFilterBank(count), 6, numbers=("num_channels",)),
    "SignalFilterBankLog": TfliteRow(
        lambda _, bits, scale: ops.SignalFilterBankLog(bits, scale), numbers=("input_correction_bits", "output_scale")
    ),
    "SignalFilterBankSpectralSubtraction": TfliteRow(
        _spectral_subtraction, numbers=_SUBTRACTION, made_states=lambda site, _: (site.output().shape,)
    ),
    "SignalFilterBankSquareRoot": TfliteRow(lambda _: ops.SignalFilterBankSquareRoot(), 2),
    "SignalFramer": TfliteRow(
        lambda _, size, step, prefill: ops.SignalFramer(size, step, bool(prefill)),
        numbers=("frame_size", "frame_step", "prefill"), made_states=_framed,
    ),
    "SignalIrfft": TfliteRow(_typed(ops.SignalIrfft, *_TYPES.values()), numbers=("T", "fft_length")),
    "SignalOverlapAdd": TfliteRow(
        _typed(ops.SignalOverlapAdd, DType.INT16, DType.FLOAT32), numbers=("T", "frame_step"), made_states=_added
    ),
    "SignalPCAN": TfliteRow(lambda _, shift: ops.SignalPcan(shift), 3, numbers=("snr_shift",)),
    "SignalRfft": TfliteRow(_typed(ops.SignalRfft, *_TYPES.values()), numbers=("T", "fft_length")),
    "SignalStacker": TfliteRow(
        lambda _, *fields: ops.SignalStacker(*fields),
        numbers=("num_channels", "stacker_left_context", "stacker_right_context", "stacker_step"),
        made_states=lambda site, stacker: _kept(site, stacker.channels, stacker.left + stacker.right),
    ),
    "SignalWindow": TfliteRow(lambda _, shift: ops.SignalWindow(shift), 2, numbers=("shift",)),
}  # fmt: skip
