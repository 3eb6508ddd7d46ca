"""The filter banks of signal processing."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Operator, ops


def _filter_bank(site: TfliteSite) -> Operator:
    return ops.SignalFilterBank(*site.numbers("num_channels"))


def _square_root(_site: TfliteSite) -> Operator:
    return ops.SignalFilterBankSquareRoot()


def _spectral_subtraction(site: TfliteSite) -> Operator:
    odd_rest, odd_smoothing, clamping, floor, channels, rest, smoothing, smoothing_bits, bits = site.numbers(
        "alternate_one_minus_smoothing", "alternate_smoothing", "clamping", "min_signal_remaining", "num_channels",
        "one_minus_smoothing", "smoothing", "smoothing_bits", "spectral_subtraction_bits",
    )  # fmt: skip
    return ops.SignalFilterBankSpectralSubtraction(
        smoothing, rest, odd_smoothing, odd_rest, floor, smoothing_bits, bits, bool(clamping), channels
    )


def _pcan(site: TfliteSite) -> Operator:
    return ops.SignalPcan(*site.numbers("snr_shift"))


def _log(site: TfliteSite) -> Operator:
    return ops.SignalFilterBankLog(*site.numbers("input_correction_bits", "output_scale"))


KINDS: Mapping[str, OperatorKind] = {
    "SignalFilterBank": OperatorKind(_filter_bank, 6),
    "SignalFilterBankLog": OperatorKind(_log, 1),
    "SignalFilterBankSpectralSubtraction": OperatorKind(
        _spectral_subtraction, 1, made_states=lambda site: (site.output().shape,)
    ),
    "SignalFilterBankSquareRoot": OperatorKind(_square_root, 2),
    "SignalPCAN": OperatorKind(_pcan, 3),
}
