"""Shared by layers with int16 activations; ``kernels/portable/numbers/wide_sums.h`` explains narrow and wide sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.library.cgen import integer
from mlfbuild.native.graph import Activation, Array, Rescale, Tensor, fine_multiplier, wide_rescale
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.native.lowering.call import Constant, Parameter, channel_table, record_words
from mlfbuild.native.lowering.common.activation import bounds_text
from mlfbuild.native.lowering.common.layer import Weighted, WeightedOperator
from mlfbuild.native.lowering.common.parameters import constant, input_and_output


def int16_range_line(activation: Activation, output: Tensor) -> str:
    """Return the local ``range`` of an operator that writes the int16 ``output``."""
    return f"const struct mlf_int16_range range = {{{', '.join(bounds_text(activation, output, 'int16_t'))}}};"


def int16_way(layer: Weighted[Conv2D | DepthwiseConv2D | FullyConnected]) -> str:
    """Return the suffix of the layer's kernel: for ``wide`` sums (64 bits), ``narrow`` ones or ``fine`` factors.

    ``fine`` factors have 32 bits after the point, as in ONNX networks; a bias of 64 bits makes sums ``wide``.
    """
    return "fine" if layer.operator.fine else "wide" if layer.sums_are_wide else "narrow"


def int16_parameters(layer: Weighted[WeightedOperator], weights: Parameter, way: str) -> tuple[Parameter, ...]:
    """Return the parameters of a layer, whose channel table suits the ``way`` of its kernel."""
    rescales = layer.rescales
    bias = np.zeros(len(rescales), np.int64) if layer.bias is None else layer.bias.reshape(-1)
    tables = {"fine": _fine_channel_table, "wide": wide_channel_table, "narrow": channel_table}
    source, output = input_and_output(layer.source, layer.output)
    return source, weights, constant(tables[way](bias, rescales)), output


def _fine_channel_table(bias: Array, rescales: Sequence[Rescale]) -> Constant:
    channels = [(value, fine_multiplier(rescale)) for value, rescale in zip(bias.tolist(), rescales, strict=True)]
    records = [f"{{{integer(value)}, {multiplier}}}" for value, multiplier in channels]
    return Constant.records("channels", "mlf_fine_channel", records, 4, lambda: record_words("i4,i4", channels))


def wide_channel_table(bias: Array, rescales: Sequence[Rescale]) -> Constant:
    """Return the ``struct mlf_wide_channel`` of each output channel; ``bias`` has integers of at most 64 bits.

    A bias is stored as two words, the low one unsigned. Factors have 15 bits and a right shift: ``wide_rescale``.
    """
    wides = (wide_rescale(rescale) for rescale in rescales)
    channels = [
        (value & 0xFFFFFFFF, value >> 32, wide.multiplier, wide.right_shift)
        for value, wide in zip(bias.tolist(), wides, strict=True)
    ]
    records = [f"{{{low}u, {integer(high)}, {{{multiplier}, {shift}}}}}" for low, high, multiplier, shift in channels]
    words = record_words("u4,i4,i2,i2", channels)
    return Constant.records("channels", "mlf_wide_channel", records, 3, lambda: words)
