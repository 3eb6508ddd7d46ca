"""Where functions of CMSIS-NN v7.0.0 compute what TensorFlow Lite Micro's reference does, bit for bit.

Elsewhere our own kernels stay. Most conditions are about numbers that the library's C or its vectors would overflow on;
those about windows are about code that reads beside the image, or takes padding for something that is not there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.compilers.native.cmsis_nn.buffers import is_3x3, is_one_row, one_row_parts
from mlfbuild.compilers.native.cmsis_nn.layer import MVE, Layer
from mlfbuild.graph import Array, Tensor
from mlfbuild.graph.quantize import Rescale, integer_range
from mlfbuild.graph.wide_sums import wide_rescale

_WIDEST_INPUT = 383
"""What a weight is multiplied with at most: a stored value and a zero point, whose products may be added apart."""
_DIFFERENCE = 255
"""A stored int8 value without its zero point."""
_LEAST_SHIFT = -30


def clamp_fits(clamp: tuple[int, int], output: Tensor) -> bool:
    """Whether the bounds of an activation are values of the output's type, the lower one first."""
    least, greatest = integer_range(output.dtype)
    return least <= clamp[0] <= clamp[1] <= greatest


def rescale_fits(rescale: Rescale, largest: int) -> bool:
    """Whether the library rescales values of up to ``largest`` either way without leaving 32 bits."""
    return rescale.shift >= _LEAST_SHIFT and largest << max(rescale.shift, 0) < 1 << 31


def fitting_rescales(weights: Array, bias: Array, rescales: Sequence[Rescale]) -> tuple[Rescale, ...] | None:
    """Return what rescales the sums of int8 products as ``rescales`` do; ``weights`` are [outputs, inputs].

    ``None`` where the library would leave 32 bits for some input. A channel whose outputs are all 0 before its zero
    point may have a shift that the library cannot do, and gets one that it can.
    """
    magnitudes = np.abs(weights.astype(np.int64)).sum(axis=1)
    offsets = np.abs(bias.astype(np.int64))
    if (offsets + _WIDEST_INPUT * magnitudes).max() >= 1 << 31:
        return None
    largest = (offsets + _DIFFERENCE * magnitudes).tolist()
    usable = tuple(_usable(rescale, each) for rescale, each in zip(rescales, largest, strict=True))
    return usable if all(map(rescale_fits, usable, largest)) else None


def fits_int16(weights: Array, bias: Array, rescales: Sequence[Rescale], *, wide: bool) -> bool:
    """Whether sums of int16 by int8 products stay within 32 bits, in which the library adds them.

    What a ``wide`` bias of int64 is added to has 64 bits, and comes back to 32 before its last bit is rounded away.
    """
    sums = (np.abs(weights.astype(np.int64)).sum(axis=1) << 15).tolist()
    largest = [each + abs(offset) for each, offset in zip(sums, bias.tolist(), strict=True)]
    if max(sums) >= 1 << 31:
        return False
    if not wide:
        return max(largest) < 1 << 31 and all(map(rescale_fits, rescales, largest))
    return all(map(_wide_fits, rescales, largest))


def _wide_fits(rescale: Rescale, largest: int) -> bool:
    wide = wide_rescale(rescale)
    product = largest * wide.multiplier
    shift = 14 - rescale.shift
    return 0 <= shift < 63 and product < 1 << 62 and product >> shift < (1 << 31) - 1


def _usable(rescale: Rescale, largest: int) -> Rescale:
    always_zero = rescale.shift < _LEAST_SHIFT and (largest * rescale.multiplier >> 31) + 1 < 1 << (-rescale.shift - 1)
    return Rescale(0, 0) if always_zero else rescale


def reads_row(layer: Layer, features: str) -> bool:
    """Whether a convolution of a row, if it is taken for one, reads what is under its windows.

    With MVE the library copies the left end of the row, with padding before it, and the right end, with padding behind
    it; it counts how many windows reach over an end, and takes for granted that those are the only ones.
    """
    parts = one_row_parts(layer) if features == MVE and is_one_row(layer) else None
    if parts is None:
        return True
    (left, middle, right), width, columns = parts, layer.image[1], layer.filter[1]
    pad, stride = layer.padding[1], layer.stride[1]
    total = (layer.output[1] - 1) * stride + columns - width
    if total < 0 or pad * 2 + total % 2 != total or columns > width:
        return False
    start = stride * (left + middle) - pad
    if stride * left < pad or start < 0 or start + columns - 1 > width:
        return False
    before = [None] * pad + list(range(columns))
    after = [*range(start, start + columns - 1), *[None] * (right if total % 2 else pad)]
    ends = [(before, 0, left), (after, left + middle, right)]
    return all(
        _under(copied, output - first, layer) == _window(output, layer)
        for copied, first, count in ends
        for output in range(first, first + count)
    ) and all(None not in _window(output, layer) for output in range(left, left + middle))


def _under(copied: Sequence[int | None], row: int, layer: Layer) -> list[int | None]:
    return list(copied[row * layer.stride[1] : row * layer.stride[1] + layer.filter[1]])


def _window(output: int, layer: Layer) -> list[int | None]:
    """Return the columns of the image under the window of ``output``, ``None`` for padding."""
    start = output * layer.stride[1] - layer.padding[1]
    columns = range(start, start + layer.filter[1])
    return [column if 0 <= column < layer.image[1] else None for column in columns]


def reads_depthwise(layer: Layer, features: str) -> bool:
    """Whether a depthwise convolution reads what is under its windows.

    MVE makes another convolution of one with a single input channel. Elsewhere one of 3x3 reads the middle column of a
    window without a look at where the image ends.
    """
    if features == MVE:
        return layer.channels > 1 or layer.output_channels == 1 or reads_row(layer, features)
    middle = (layer.output[1] - 1) * layer.stride[1] - layer.padding[1] + 1
    return not is_3x3(layer) or middle < layer.image[1]
