"""int8 CONV_2D and FULLY_CONNECTED for cores with the DSP extension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mlfbuild.native.graph import Array
from mlfbuild.native.graph.ops import Conv2D, FullyConnected
from mlfbuild.native.lowering.call import NOT_EXACT, Constant, KernelCall, Parameter
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.dsp import DspChannels, brief_channels, dsp_channels, spare_memory
from mlfbuild.native.lowering.common.layer import Weighted
from mlfbuild.native.lowering.common.matmul_dsp import groups_of, pack_dot_1x4, pack_matmul
from mlfbuild.native.lowering.common.parameters import array, packed_filter, reads, scratch, writes
from mlfbuild.native.lowering.common.window import static_struct_lines, window_fields
from mlfbuild.native.lowering.trained import trained

PIXELS = 3
"""The block size."""
FEWER_PIXELS = 2
"""The block size if three pixels would raise the network's peak: 6 % more instructions, a third less memory."""
BYTES = 2
"""Of an expanded input."""

# The kernel is more code, which fewer weights do not pay for.
_LARGE = 1024
"""From this number of weights on, a product with few rows calls a kernel that reads them in fours of channels."""

_Layer = Weighted[Conv2D | FullyConnected]
_Pack = Callable[[DspChannels], Array | None]

# A part of a filter gains in proportion to its size, and the copy costs code.
_COPIED = 512
"""The least bytes of a filter that are worth copying to RAM if the others remain in flash."""
# Cores without wait states lose less than 1 % from here on.
READ_AGAIN = 16
"""From this number of pixels on, copying takes much less time than the wait states that it avoids."""

# The code that gathers and the code that multiplies may not fit into a small instruction cache together (1 KiB on an
# STM32L4R5): gathering several blocks at a time switches between them less often.
_GATHERED = (8, 4)
"""Blocks whose windows are gathered at a time, if there is room for them: with all filters copied, and with fewer."""

_LARGEST_ROW = 512
"""Expanding a row of up to this many bytes saves a quarter of the instructions of a product with one vector."""


def lower_conv2d_dsp(layer: Weighted[Conv2D]) -> KernelCall | str:
    """Return the call of a kernel of ``conv2d_dsp.h``, or of ``matmul_dsp.h`` for 1x1 with stride 1, or a reason."""
    if layer.is_pointwise:
        return lower_matmul_dsp(layer)
    filter_ = _pairs(layer, whole=True)
    if filter_ is None:
        return NOT_EXACT
    matmul = matmul_fields(layer, brief=filter_.brief)
    row, channels = row_size(layer.inputs), layer.output.shape[3]
    pair, pairs = _pair_size(layer, brief=filter_.brief), channels // 2
    again = layer.rows >= READ_AGAIN
    copied = again and channels % 2 == 0

    def body(statement: str, copied: int) -> tuple[str, ...]:
        return (*conv2d_lines(layer, matmul | copied_field(copied)), statement)

    if layer.source.shape[3] % 4 != 0:  # pixels are not whole words: windows are copied before they are expanded
        return _gathered(layer, filter_, body, row, pair if copied else 0, several=again)
    block = block_size(layer, row)
    parameters = (*dsp_parameters(layer, filter_.constant, block * row), padding_pixel(layer))
    statement = f"mlf_conv2d_int8_dsp(&conv2d, {block}, input, filter, padding, output, scratch);"
    grown = None
    if block == PIXELS and copied:
        grown = partial(with_copy, block * row, pair, pairs, partial(body, statement))
    blocks = -(-layer.rows // block)
    return KernelCall("conv2d", "conv2d_dsp.h", parameters, body(statement, 0), grown=grown, blocks=blocks)


def _gathered(
    layer: Weighted[Conv2D],
    filter_: PackedFilter,
    body: Callable[[str, int], tuple[str, ...]],
    row: int,
    pair: int,
    *,
    several: bool,
) -> KernelCall:
    """Return the call of ``mlf_conv2d_gather_int8_dsp``, whose windows have ``row`` bytes when they are expanded.

    If there is room, it gathers ``several`` blocks at a time, and copies filters of ``pair`` bytes; 0 for none.
    """

    def made(blocks: int, copied: int) -> tuple[str, ...]:
        outside = trained(zero_point(layer.source))
        return body(
            f"mlf_conv2d_gather_int8_dsp(&conv2d, {blocks}, input, filter, output, scratch, {outside});", copied
        )

    def with_room(free: int) -> tuple[int, tuple[str, ...]]:
        pairs = layer.output.shape[3] // 2 if pair else 0
        for most in _GATHERED:
            blocks = min(most, (free - PIXELS * row) // (PIXELS * row // BYTES))
            scratch = PIXELS * (row + blocks * row // BYTES)
            # Fewer blocks leave more memory for filters, if it is not enough for all.
            if scratch + pair * pairs <= free:
                break
        return with_copy(scratch, pair or 1, pairs, partial(made, blocks), free)

    parameters = dsp_parameters(layer, filter_.constant, PIXELS * (row + row // BYTES))
    return KernelCall("conv2d", "conv2d_dsp.h", parameters, made(1, 0), grown=with_room if several else None)


def block_size(layer: _Layer, row: int) -> int:
    """Return the pixels of a block with ``row`` bytes for each: as many as do not enlarge the arena."""
    return PIXELS if PIXELS * row <= spare_memory(layer.graph, layer.node) else FEWER_PIXELS


def lower_matmul_dsp(layer: _Layer) -> KernelCall | str:
    """Return the call of ``mlf_matmul_int8_dsp`` or a form of it, or the reason why the portable kernel must do it."""
    word, rows, inputs, (channels, *_) = layer.word, layer.rows, layer.inputs, layer.weights.shape
    single = rows == 1 and block_size(layer, row_size(inputs)) == PIXELS
    blocked = inputs % 4 == 0 and (rows >= PIXELS or single)
    large = layer.weights.elements >= _LARGE and inputs % 4 == 0 and channels % 4 == 0
    # With three rows or more, a block reads each weight once for three products.
    fours = _filter(layer, "dot_1x4_dsp.h", pack_dot_1x4, 3 * channels // 4) if large and rows < PIXELS else None
    if fours is not None:
        matmul = matmul_lines(matmul_fields(layer, brief=fours.brief))
        statement = "mlf_matvec4_int8_dsp(&matmul, input, filter, output);"
        return KernelCall(word, "dot_1x4_dsp.h", dsp_parameters(layer, fours.constant, 0), (*matmul, statement))
    filter_ = _pairs(layer, whole=blocked)
    # Without the block, the kernel adds the odd channel in another way, which has no limit of 24 bits.
    if filter_ is None and blocked:
        blocked, filter_ = False, _pairs(layer, whole=False)
    if filter_ is None:
        return NOT_EXACT
    size = (PIXELS if blocked else 1) * row_size(inputs)
    fields = matmul_fields(layer, brief=filter_.brief)
    if not blocked and inputs % 4 == 0 and (rows >= PIXELS or size > _LARGEST_ROW):
        statement = "mlf_matvec_int8_dsp(&matmul, input, filter, output);"
        parameters = dsp_parameters(layer, filter_.constant, 0)
        return KernelCall(word, "matmul_dsp.h", parameters, (*matmul_lines(fields), statement))
    statement = f"mlf_matmul{PIXELS if blocked else ''}_int8_dsp(&matmul, input, filter, output, scratch);"

    def body(copied: int) -> tuple[str, ...]:
        return (*matmul_lines(fields | copied_field(copied)), statement)

    grown = None
    if blocked and rows >= READ_AGAIN and channels % 2 == 0:
        grown = partial(with_copy, size, _pair_size(layer, brief=filter_.brief), channels // 2, body)
    parameters = dsp_parameters(layer, filter_.constant, size)
    blocks = -(-rows // PIXELS)
    return KernelCall(word, "matmul_dsp.h", parameters, body(0), (0,), grown=grown, blocks=blocks)


def _pair_size(layer: _Layer, *, brief: bool) -> int:
    """Return the bytes of the filter of a pair of channels, the most that it can have if it is replaceable."""
    return 4 * (2 * groups_of(layer.inputs) + (4 if brief and not layer.replaceable else 6))


def with_copy(
    scratch: int, pair: int, pairs: int, body: Callable[[int], tuple[str, ...]], free: int
) -> tuple[int, tuple[str, ...]]:
    """Return scratch memory and body of a call that copies as many of the ``pairs`` of filters as ``free`` permits.

    A pair has ``pair`` bytes, and without a copy the call needs ``scratch`` bytes.
    """
    # The last pairs stay in flash.
    copied = min(pairs, (free - scratch) // pair)
    if copied < pairs and copied * pair < _COPIED:
        copied = 0
    return scratch + copied * pair, body(copied)


def copied_field(pairs: int) -> dict[str, int]:
    """Return the field of the ``struct mlf_matmul_dsp`` for copied filters."""
    return {"copied": pairs} if pairs else {}


def copied_pairs(call: KernelCall) -> str:
    """Return the value of the field ``copied`` in the body of ``call``."""
    found = (line.partition(".copied = ")[2].removesuffix(",") for line in call.body)
    return next((text for text in found if text), "0")


def is_brief(call: KernelCall) -> bool:
    """Return whether ``call`` has the brief requantisation."""
    return any(line.strip() == f".rounding = {trained(0)}," for line in call.body)


def row_size(inputs: int) -> int:
    """Return the bytes of a row, expanded to 16 bits and filled up to whole groups."""
    return groups_of(inputs) * 4 * BYTES


class PackedFilter(NamedTuple):
    """A filter for kernels."""

    constant: Constant
    brief: bool
    """Whether it has the constants of the brief requantisation."""


def _pairs(layer: _Layer, *, whole: bool) -> PackedFilter | None:
    """Return the filter in pairs of channels, as ``pack_matmul``."""
    pairs = -(-layer.weights.shape[0] // 2)
    return _filter(layer, "matmul_dsp.h", partial(pack_matmul, whole=whole), 2 * pairs)


def _filter(layer: _Layer, header: str, pack: _Pack, more: int) -> PackedFilter | None:
    """Return the filter that ``pack`` returns for a kernel of ``header``; ``None`` if no such one gives exact sums.

    The usual requantisation takes ``more`` words than the brief one.
    """

    def words(channels: DspChannels | None) -> Array | None:
        return None if channels is None else pack(channels)

    channels = _channels(layer)
    packed = words(channels)
    if channels is None or packed is None:
        return None
    room = packed.nbytes + 4 * more if channels.brief else 0
    return PackedFilter(Constant.packed(packed, header, lambda: words(_channels(layer)), room=room), channels.brief)


def _channels(layer: _Layer) -> DspChannels | None:
    channels = general_channels(layer)
    return None if channels is None else brief_channels(channels, zero_point(layer.output))


def general_channels(layer: _Layer) -> DspChannels | None:
    """Return the constants of the output channels, without those of the brief requantisation."""
    return dsp_channels(layer.matrix, layer.folded_bias(), layer.rescales, zero_point(layer.output))


def matmul_fields(layer: _Layer, *, brief: bool) -> dict[str, object]:
    """Return the fields of the ``struct mlf_matmul_dsp``."""
    minimum, maximum = layer.bounds
    return {
        "rows": layer.rows,
        "inputs": layer.inputs,
        "outputs": layer.output.shape[-1],
        "rounding": trained(0 if brief else 2 * zero_point(layer.output) + 1),
        "minimum": minimum,
        "maximum": maximum,
    }


def dsp_parameters(layer: _Layer, filter_: Constant, size: int) -> tuple[Parameter, ...]:
    """Return the parameters of a product with ``size`` bytes of scratch memory."""
    memory = [scratch("int16_t", size)] if size else []
    return (reads("input", layer.source), packed_filter(filter_), writes("output", layer.output), *memory)


def padding_pixel(layer: _Layer) -> Parameter:
    """Return the parameter ``padding``: a pixel outside of the int8 image."""
    return array("padding", "int8_t", np.full(layer.source.shape[3], zero_point(layer.source), np.int8))


def _nested(name: str, fields: Mapping[str, object]) -> Sequence[str]:
    return (f"    .{name} = {{", *(f"        .{field} = {text}," for field, text in fields.items()), "    },")


def matmul_lines(fields: Mapping[str, object]) -> Sequence[str]:
    """Return the local ``matmul``, which is static, so that kernels are not specialised for it."""
    return static_struct_lines("mlf_matmul_dsp", "matmul", fields)


def conv2d_lines(layer: Weighted[Conv2D], matmul: Mapping[str, object]) -> Sequence[str]:
    """Return the local ``conv2d``."""
    return (
        "static const struct mlf_conv2d_dsp conv2d = {",
        *_nested("window", window_fields(layer.node, layer.window, *layer.images)),
        *_nested("matmul", matmul),
        "};",
    )
