"""Shared by layers with int16 activations; ``kernels/portable/numbers/wide_sums.h`` explains narrow and wide sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.library.cgen import braces, integer
from mlfbuild.native.graph import Activation, Array, Rescale, Tensor, activation_range, fine_multiplier, wide_rescale
from mlfbuild.native.lowering.call import Constant, Parameter, channel_table, record_words


def int16_range_line(activation: Activation, output: Tensor) -> str:
    """Return the local ``range`` of an operator that writes the int16 ``output``."""
    return f"const struct mlf_int16_range range = {braces(activation_range(activation, output))};"


def int16_way(*, wide: bool, fine: bool) -> str:
    """Return the suffix of kernels whose sums have 64 bits (``wide``) or 32 bits, or whose factors are ``fine``."""
    return "fine" if fine else "wide" if wide else "narrow"


def int16_parameters(
    source: Tensor, weights: Constant, bias: Tensor | None, rescales: Sequence[Rescale], output: Tensor, way: str
) -> tuple[Parameter, ...]:
    """Return the parameters of a layer, whose channel table suits the ``way`` of its kernel."""
    values = np.zeros(len(rescales), np.int64) if bias is None or bias.data is None else bias.data.reshape(-1)
    tables = {"fine": _fine_channel_table, "wide": wide_channel_table, "narrow": channel_table}
    channels = tables[way](values, rescales)
    return (
        Parameter("const int16_t *", "input", source.name),
        Parameter("const int8_t *", weights.name, weights),
        Parameter(f"const {channels.c_type} *", "channels", channels),
        Parameter("int16_t *", "output", output.name),
    )


def _fine_channel_table(bias: Array, rescales: Sequence[Rescale]) -> Constant:
    channels = [(value, fine_multiplier(rescale)) for value, rescale in zip(bias.tolist(), rescales, strict=True)]
    records = [f"{{{integer(value)}, {multiplier}}}" for value, multiplier in channels]
    return Constant.records("channels", "mlf_fine_channel", records, 4, lambda: record_words("i4,i4", channels))


def wide_channel_table(bias: Array, rescales: Sequence[Rescale]) -> Constant:
    """Return the ``struct mlf_wide_channel`` of each output channel; ``bias`` has integers of at most 64 bits."""
    wides = (wide_rescale(rescale) for rescale in rescales)
    channels = [
        (value & 0xFFFFFFFF, value >> 32, wide.multiplier, wide.right_shift)
        for value, wide in zip(bias.tolist(), wides, strict=True)
    ]
    records = [f"{{{low}u, {integer(high)}, {{{multiplier}, {shift}}}}}" for low, high, multiplier, shift in channels]
    words = record_words("u4,i4,i2,i2", channels)
    return Constant.records("channels", "mlf_wide_channel", records, 3, lambda: words)
