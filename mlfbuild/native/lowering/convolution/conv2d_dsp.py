"""int8 CONV_2D and FULLY_CONNECTED for cores with the DSP extension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from mlfbuild.native.graph import Array, Graph, Node, Tensor, activation_range
from mlfbuild.native.graph.bases import convolution_tensors
from mlfbuild.native.graph.ops import Conv2D, FullyConnected
from mlfbuild.native.lowering.call import (
    NOT_EXACT,
    Constant,
    KernelCall,
    Parameter,
    ScratchBuffer,
    folded_bias,
    struct_lines,
)
from mlfbuild.native.lowering.common.activation import zero_point
from mlfbuild.native.lowering.common.dsp import DspChannels, brief_channels, dsp_channels, spare_memory
from mlfbuild.native.lowering.common.matmul_dsp import groups_of, pack_dot_1x4, pack_matmul
from mlfbuild.native.lowering.common.window import window_fields

PIXELS = 3
"""The block size."""
FEWER_PIXELS = 2
"""The block size if three pixels would raise the network's peak: 6 % more instructions, a third less memory."""
BYTES = 2
"""Of an expanded input."""

# The kernel is more code, which fewer weights do not pay for.
_LARGE = 1024
"""From this number of weights on, a product with few rows calls a kernel that reads them in fours of channels."""

_Pack = Callable[[DspChannels], Array | None]

# A part of a filter gains in proportion to its size, and the copy costs code.
_COPIED = 512
"""The least bytes of a filter that are worth copying to RAM if the others remain in flash."""
# Cores without wait states lose less than 0.5 % from here on.
READ_AGAIN = 16 * PIXELS
"""From this number of pixels on, copying takes much less time than the wait states that it avoids."""

# The code that gathers and the code that multiplies may not fit into a small instruction cache together (1 KiB on an
# STM32L4R5): gathering several blocks at a time switches between them less often.
_GATHERED = 8
"""Blocks whose windows are gathered at a time, if there is room for them."""

_LARGEST_ROW = 512
"""Expanding a row of up to this many bytes saves a quarter of the instructions of a product with one vector."""


def lower_fully_connected_dsp(graph: Graph, node: Node, operator: FullyConnected) -> KernelCall | str:
    """Return the call of ``mlf_matmul_int8_dsp``, or the reason why the portable kernel must do it."""
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    return _matmul(graph, node, operator, "fully_connected", source.elements // weights.shape[1], output)


def lower_conv2d_dsp(graph: Graph, node: Node, operator: Conv2D) -> KernelCall | str:
    """Return the call of a kernel of ``conv2d_dsp.h``, or of ``matmul_dsp.h`` for 1x1 with stride 1, or a reason."""
    source, weights, _, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    pixels = output.elements // output.shape[3]
    if weights.shape[1:3] == (1, 1) and operator.stride == (1, 1) and operator.padding == ((0, 0), (0, 0)):
        return _matmul(graph, node, operator, "conv2d", pixels, output)
    filter_ = _pairs(graph, node, whole=True)
    if filter_ is None:
        return NOT_EXACT
    inputs = weights.elements // weights.shape[0]
    window = window_fields(node, operator.window(weights), source, output)
    matmul = matmul_fields(operator, pixels, inputs, output, brief=filter_.brief)
    row = row_size(inputs)
    pair, pairs = _pair_size(inputs, brief=filter_.brief), output.shape[3] // 2
    again = pixels >= READ_AGAIN
    copied = again and output.shape[3] % 2 == 0

    def body(statement: str, copied: int) -> tuple[str, ...]:
        return (*conv2d_lines(window, matmul | copied_field(copied), zero_point(source)), statement)

    if source.shape[3] % 4 != 0:  # pixels are not whole words: windows are copied before they are expanded
        return _gathered(source, filter_, output, body, row, pair * pairs if copied else 0, several=again)
    block = block_size(graph, node, row)
    padding = Constant.array("padding", "int8_t", np.full(source.shape[3], zero_point(source), np.int8))
    parameters = (
        *dsp_parameters(source, filter_.constant, output, block * row),
        Parameter("const int8_t *", "padding", padding),
    )
    statement = f"mlf_conv2d_int8_dsp(&conv2d, {block}, input, filter, padding, output, scratch);"
    grown = None
    if block == PIXELS and copied:
        grown = partial(with_copy, block * row, pair, pairs, partial(body, statement))
    return KernelCall("conv2d", "conv2d_dsp.h", parameters, body(statement, 0), grown=grown)


def _gathered(
    source: Tensor,
    filter_: PackedFilter,
    output: Tensor,
    body: Callable[[str, int], tuple[str, ...]],
    row: int,
    copied: int,
    *,
    several: bool,
) -> KernelCall:
    """Return the call of ``mlf_conv2d_gather_int8_dsp``, whose windows have ``row`` bytes when they are expanded.

    If there is room, it gathers ``several`` blocks at a time, and copies ``copied`` bytes of filters: all or none,
    because its code is specialised, and would become longer.
    """
    pairs = output.shape[3] // 2

    def made(blocks: int, copied: int) -> tuple[str, ...]:
        return body(f"mlf_conv2d_gather_int8_dsp(&conv2d, {blocks}, input, filter, output, scratch);", copied)

    def with_room(free: int) -> tuple[int, tuple[str, ...]]:
        blocks = min(_GATHERED, (free - PIXELS * row) // (PIXELS * row // BYTES))
        scratch = PIXELS * (row + blocks * row // BYTES)
        copies = 0 < copied <= free - scratch
        return scratch + copies * copied, made(blocks, copies * pairs)

    parameters = dsp_parameters(source, filter_.constant, output, PIXELS * (row + row // BYTES))
    return KernelCall("conv2d", "conv2d_dsp.h", parameters, made(1, 0), grown=with_room if several else None)


def block_size(graph: Graph, node: Node, row: int) -> int:
    """Return the pixels of a block with ``row`` bytes for each: as many as do not enlarge the arena."""
    return PIXELS if PIXELS * row <= spare_memory(graph, node) else FEWER_PIXELS


def _matmul(
    graph: Graph, node: Node, operator: Conv2D | FullyConnected, word: str, rows: int, output: Tensor
) -> KernelCall | str:
    source, weights, _, _ = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    inputs = weights.elements // weights.shape[0]
    single = rows == 1 and block_size(graph, node, row_size(inputs)) == PIXELS
    blocked = inputs % 4 == 0 and (rows >= PIXELS or single)
    large = weights.elements >= _LARGE and inputs % 4 == 0 and weights.shape[0] % 4 == 0
    # With three rows or more, a block reads each weight once for three products.
    fours = _filter(graph, node, "dot_1x4_dsp.h", pack_dot_1x4) if large and rows < PIXELS else None
    if fours is not None:
        matmul = matmul_lines(matmul_fields(operator, rows, inputs, output, brief=fours.brief))
        statement = "mlf_matvec4_int8_dsp(&matmul, input, filter, output);"
        return KernelCall(
            word, "dot_1x4_dsp.h", dsp_parameters(source, fours.constant, output, 0), (*matmul, statement)
        )
    filter_ = _pairs(graph, node, whole=blocked)
    # Without the block, the kernel adds the odd channel in another way, which has no limit of 24 bits.
    if filter_ is None and blocked:
        blocked, filter_ = False, _pairs(graph, node, whole=False)
    if filter_ is None:
        return NOT_EXACT
    scratch = (PIXELS if blocked else 1) * row_size(inputs)
    fields = matmul_fields(operator, rows, inputs, output, brief=filter_.brief)
    matmul = matmul_lines(fields)
    if not blocked and inputs % 4 == 0 and (rows >= PIXELS or scratch > _LARGEST_ROW):
        statement = "mlf_matvec_int8_dsp(&matmul, input, filter, output);"
        parameters = dsp_parameters(source, filter_.constant, output, 0)
        return KernelCall(word, "matmul_dsp.h", parameters, (*matmul, statement))
    statement = f"mlf_matmul{PIXELS if blocked else ''}_int8_dsp(&matmul, input, filter, output, scratch);"

    pair = _pair_size(inputs, brief=filter_.brief)

    def body(copied: int) -> tuple[str, ...]:
        return (*matmul_lines(fields | copied_field(copied)), statement)

    grown = None
    if blocked and rows >= READ_AGAIN and output.shape[-1] % 2 == 0:
        grown = partial(with_copy, scratch, pair, output.shape[-1] // 2, body)
    parameters = dsp_parameters(source, filter_.constant, output, scratch)
    return KernelCall(word, "matmul_dsp.h", parameters, body(0), (0,), grown=grown)


def _pair_size(inputs: int, *, brief: bool) -> int:
    """Return the bytes of the filter of a pair of channels."""
    return 4 * (2 * groups_of(inputs) + (4 if brief else 6))


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


def copied_field(pairs: int) -> dict[str, str]:
    """Return the field of the ``struct mlf_matmul_dsp`` for copied filters."""
    return {"copied": str(pairs)} if pairs else {}


def row_size(inputs: int) -> int:
    """Return the bytes of a row, expanded to 16 bits and filled up to whole groups."""
    return groups_of(inputs) * 4 * BYTES


class PackedFilter(NamedTuple):
    """A filter for kernels."""

    constant: Constant
    brief: bool
    """Whether it has the constants of the brief requantisation."""


def _pairs(graph: Graph, node: Node, *, whole: bool) -> PackedFilter | None:
    """Return the filter in pairs of channels, as ``pack_matmul``."""
    return _filter(graph, node, "matmul_dsp.h", partial(pack_matmul, whole=whole))


def _filter(graph: Graph, node: Node, header: str, pack: _Pack) -> PackedFilter | None:
    """Return the filter that ``pack`` returns for a kernel of ``header``; ``None`` if no such one gives exact sums."""

    def words(channels: DspChannels | None) -> Array | None:
        return None if channels is None else pack(channels)

    channels = _channels(graph, node)
    packed = words(channels)
    if channels is None or packed is None:
        return None
    return PackedFilter(Constant.packed(packed, header, lambda: words(_channels(graph, node))), channels.brief)


def _channels(graph: Graph, node: Node) -> DspChannels | None:
    channels = general_channels(graph, node)
    output = graph.outputs_of(node)[0]
    return None if channels is None else brief_channels(channels, zero_point(output))


def general_channels(graph: Graph, node: Node) -> DspChannels | None:
    """Return the constants of the output channels, without those of the brief requantisation."""
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    folded = folded_bias(None if bias is None else bias.data, weights.known, 0, zero_point(source))
    assert isinstance(node.operator, Conv2D | FullyConnected)
    rescales = node.operator.rescales(source, weights, output)
    matrix = np.asarray(weights.known.reshape(weights.shape[0], -1))
    return dsp_channels(matrix, folded, rescales, zero_point(output))


def matmul_fields(
    operator: Conv2D | FullyConnected, rows: int, inputs: int, output: Tensor, *, brief: bool
) -> dict[str, str]:
    """Return the fields of the ``struct mlf_matmul_dsp``."""
    minimum, maximum = activation_range(operator.activation, output)
    return {
        "rows": str(rows),
        "inputs": str(inputs),
        "outputs": str(output.shape[-1]),
        "rounding": str(0 if brief else 2 * zero_point(output) + 1),
        "minimum": str(minimum),
        "maximum": str(maximum),
    }


def dsp_parameters(source: Tensor, filter_: Constant, output: Tensor, scratch: int) -> tuple[Parameter, ...]:
    """Return the parameters of a product with ``scratch`` bytes of scratch memory."""
    return (
        Parameter("const int8_t *", "input", source.name),
        Parameter("const int32_t *", "filter", filter_),
        Parameter("int8_t *", "output", output.name),
        *([Parameter("int16_t *", "scratch", ScratchBuffer(scratch))] if scratch else []),
    )


def _nested(name: str, fields: Mapping[str, str]) -> Sequence[str]:
    return (f"    .{name} = {{", *(f"        .{field} = {text}," for field, text in fields.items()), "    },")


def matmul_lines(fields: Mapping[str, str]) -> Sequence[str]:
    """Return the local ``matmul``, which is static, so that kernels are not specialised for it."""
    lines = struct_lines("mlf_matmul_dsp", "matmul", fields)
    return (f"static {lines[0]}", *lines[1:])


def conv2d_lines(window: Mapping[str, str], matmul: Mapping[str, str], zero_point: int) -> Sequence[str]:
    """Return the local ``conv2d``; ``zero_point`` is the input's."""
    return (
        "static const struct mlf_conv2d_dsp conv2d = {",
        *_nested("window", window),
        *_nested("matmul", matmul),
        f"    .zero_point = {zero_point},",
        "};",
    )
