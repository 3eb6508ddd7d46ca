"""CONV_2D and FULLY_CONNECTED of int16 activations for Helium (MVE): ``kernels/mve/conv2d_int16_mve.h``."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph.ops import Conv2D, FullyConnected
from mlfbuild.native.lowering.call import NOT_EXACT, KernelCall
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.parameters import array, reads, scratch, writes
from mlfbuild.native.lowering.common.window import window_lines
from mlfbuild.native.lowering.convolution.conv2d_int16_dsp import INT16, PIXELS, matmul_lines, narrow_channels


def lower_int16_mve(layer: Weighted[Conv2D | FullyConnected]) -> KernelCall | str:
    """Return the call of a kernel of ``conv2d_int16_mve.h``, or the reason why another kernel must do it."""
    channels = narrow_channels(layer.matrix, layer) if layer.sums_are_wide else None
    # Narrow sums (32 bits) are done by the DSP kernel, whose instructions MVE cores have. Channels come in pairs.
    if channels is None or len(channels.weights) < 2:
        return NOT_EXACT
    # Bias and multiplier of a channel are adjacent, in the order in which the kernel reads them.
    pairs = np.stack([channels.bias, channels.multiplier], axis=1).astype(np.int32)
    # Three pixels are computed together; an image of fewer has one at a time.
    block = PIXELS if layer.rows >= PIXELS else 1
    # A 1x1 filter reads the image as a matrix: no copy is necessary.
    copied = not layer.is_pointwise
    body = (*matmul_lines(layer), "mlf_matmul_int16_mve(&matmul, input, filter, channels, output);")
    if copied:
        body = (
            *window_lines(layer.node, layer.window, *layer.images),
            *matmul_lines(layer),
            "mlf_conv2d_int16_mve(&window, &matmul, input, filter, channels, output, scratch);",
        )
    return KernelCall(layer.word, "conv2d_int16_mve.h", (
        reads("input", layer.source),
        array("filter", "int8_t", channels.weights.astype(np.int8)),
        array("channels", "int32_t", pairs),
        writes("output", layer.output),
        *([scratch("int16_t", block * layer.inputs * INT16)] if copied else []),
    ), body)  # fmt: skip
