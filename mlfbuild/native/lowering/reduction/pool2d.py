"""AVERAGE_POOL_2D and MAX_POOL_2D."""

from __future__ import annotations

import math

from mlfbuild.native.graph import DType, Graph, Node, Tensor
from mlfbuild.native.graph.ops import AveragePool2D, MaxPool2D
from mlfbuild.native.lowering.call import (
    LARGEST_SUM,
    Constant,
    KernelCall,
    record_words,
    rescale_fields,
    rescale_text,
    unsupported,
)
from mlfbuild.native.lowering.common.activation import bounds_text, float_range_line, suffix, zero_point
from mlfbuild.native.lowering.common.candidates import choose_core
from mlfbuild.native.lowering.common.parameters import constant, input_and_output
from mlfbuild.native.lowering.common.window import window_lines
from mlfbuild.native.settings import CodegenSettings

_MOST_PIXELS = {DType.INT8: LARGEST_SUM, DType.INT16: 1 << 15}
"""The most pixels whose sum always fits in 32 bits."""

# 255 * 128 < 2**15.
_MOST_AVERAGED = 255
"""The most pixels whose sum fits in 16 bits, for the kernels for Helium and DSP."""
_GROUP = 4
"""Channels that the kernel for DSP computes at once."""
_HALF_EVEN = "pool2d_half_even"


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_average_pool_*`` or ``mlf_max_pool_*``."""
    operator = node.operator
    assert isinstance(operator, AveragePool2D | MaxPool2D)
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    if isinstance(operator, AveragePool2D) and operator.half_even and source.dtype is not DType.FLOAT32:
        return _lower_half_even(node, operator, source, output, settings)
    if source.dtype is DType.FLOAT32:
        return _call(node, "", float_range_line(operator.activation), source, output)
    most = _MOST_PIXELS[source.dtype]
    if math.prod(operator.filter) > most:
        raise unsupported(node, f"{source.dtype.value} pools have at most {most} pixels")
    bounds = f"const struct mlf_int32_range range = {{{', '.join(bounds_text(operator.activation, output))}}};"
    if source.dtype is not DType.INT8:
        return _call(node, "", bounds, source, output)
    many = "" if isinstance(operator, MaxPool2D) else _limit(math.prod(operator.filter))
    half_up = isinstance(operator, AveragePool2D) and operator.half_up
    # Average pools for MVE and DSP add in 16 bits; max pools have no such limit.
    limits = {"_mve": many, "_dsp": many or _few_channels(source)}
    if half_up:
        del limits["_mve"]  # there is no such kernel
    stem = "pool2d_half_up" if half_up else "pool2d"
    return choose_core(settings, stem, lambda way: _call(node, way, bounds, source, output, half_up=half_up), limits)


def _limit(pixels: int) -> str:
    return "" if pixels <= _MOST_AVERAGED else f"is for averages of at most {_MOST_AVERAGED} pixels"


def _few_channels(source: Tensor) -> str:
    return "" if source.shape[3] >= _GROUP else f"is for at least {_GROUP} channels"


def _call(node: Node, way: str, bounds: str, source: Tensor, output: Tensor, *, half_up: bool = False) -> KernelCall:
    operator = node.operator
    assert isinstance(operator, AveragePool2D | MaxPool2D)
    rounding = "_half_up" if half_up else ""
    word = "average_pool" if isinstance(operator, AveragePool2D) else "max_pool"
    return KernelCall(word, f"pool2d{rounding}{way}.h", (
        *input_and_output(source, output),
    ), (
        *window_lines(node, operator.window(), source, output),
        bounds,
        f"mlf_{word}{rounding}_{suffix(source.dtype)}{way}(&window, range, input, output);",
    ), _overwrites(operator))  # fmt: skip


def _lower_half_even(
    node: Node, operator: AveragePool2D, source: Tensor, output: Tensor, settings: CodegenSettings
) -> KernelCall:
    """Return the call of ``mlf_average_pool_half_even_*``, with a rescaling for each number of pixels."""
    many = _limit(operator.most)
    limits = {"_mve": many, "_dsp": many or _few_channels(source)} if source.dtype is DType.INT8 else {}
    # Windows at the border have fewer pixels; the table has a factor for each number, down to the least that occurs.
    least = int(operator.window().counts(source, output).min())
    factors = [operator.rescale(source, output, count) for count in range(operator.most, least - 1, -1)]
    ends = zero_point(source), zero_point(output)
    records = [f"{{{ends[0]}, {ends[1]}, {rescale_text(factor)}}}" for factor in factors]
    words = record_words("i4,i4,i4,i2,i2", [(*ends, *rescale_fields(factor)) for factor in factors])
    rescalings = Constant.records("rescalings", "mlf_rescaling", records, 2, lambda: words)
    bounds = (*bounds_text(operator.activation, output), str(operator.most), "rescalings")
    return choose_core(settings, _HALF_EVEN, lambda way: KernelCall("average_pool", f"{_HALF_EVEN}{way}.h", (
        constant(rescalings),
        *input_and_output(source, output),
    ), (
        *window_lines(node, operator.window(), source, output),
        f"const struct mlf_pool_means means = {{{', '.join(bounds)}}};",
        f"mlf_average_pool_half_even_{suffix(source.dtype)}{way}(&window, means, input, output);",
    ), _overwrites(operator)), limits)  # fmt: skip


def _overwrites(operator: AveragePool2D | MaxPool2D) -> tuple[int, ...]:
    """Return the positions of inputs that the output may overwrite.

    Without padding, a pixel is written at or before the start of its window, which no later window reads.
    """
    return (0,) if operator.padding == ((0, 0), (0, 0)) else ()
