"""What the calls of layers of int16 activations share: see ``kernels/wide_sums.h``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.compilers.native.literals import braces, integer, record_lines
from mlfbuild.compilers.native.ops.call import Constant, Parameter, channel_table
from mlfbuild.graph import Activation, Array, Tensor
from mlfbuild.graph.quantize import Rescale, activation_range
from mlfbuild.graph.wide_sums import wide_rescale


def int16_range_line(activation: Activation, output: Tensor) -> str:
    """Return the local ``range`` of an operator that writes the int16 ``output``."""
    return f"const struct mlf_int16_range range = {braces(activation_range(activation, output))};"


def int16_way(*, wide: bool) -> str:
    """Return the end of the names of kernels whose sums have 64 bits, or 32."""
    return "wide" if wide else "narrow"


def int16_parameters(
    source: Tensor, weights: Constant, bias: Tensor | None, rescales: Sequence[Rescale], output: Tensor, *, wide: bool
) -> tuple[Parameter, ...]:
    """Return the parameters of a layer, with the way in which sums are finished."""
    values = np.zeros(len(rescales), np.int64) if bias is None or bias.data is None else bias.data.reshape(-1)
    channels = wide_channel_table(values, rescales) if wide else channel_table(values, rescales)
    return (
        Parameter("const int16_t *", "input", source.name),
        Parameter("const int8_t *", weights.name, weights),
        Parameter(f"const {channels.c_type} *", "channels", channels),
        Parameter("int16_t *", "output", output.name),
    )


def wide_channel_table(bias: Array, rescales: Sequence[Rescale]) -> Constant:
    """Return the ``struct mlf_wide_channel`` of each output channel; ``bias`` are integers of at most 64 bits."""
    records = []
    for value, rescale in zip(bias.tolist(), rescales, strict=True):
        wide = wide_rescale(rescale)
        words = f"{value & 0xFFFFFFFF}U, {integer(value >> 32)}"
        records.append(f"{{{words}, {{{wide.multiplier}, {wide.right_shift}}}}}")
    initializer = "\n".join(("{", *record_lines(records, 3), "}"))
    return Constant("channels", "struct mlf_wide_channel", initializer, 12 * len(records), len(records))
