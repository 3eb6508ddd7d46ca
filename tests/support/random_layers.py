"""Steps of random networks that compute: products, reductions, comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from support.random_operators import LARGEST, LARGEST_SPREAD

if TYPE_CHECKING:
    from support.random_graphs import RandomGraph


def transpose_conv(g: RandomGraph, source: int) -> None:
    """Draw an output size from which a convolution with the same window computes that of ``source``."""
    batch, rows, columns, depth = g.shape_of(source)
    channels, size, stride, padding = g.number(1, 5), g.pair(1, 3), g.pair(1, 2), g.choice(("SAME", "VALID"))
    wanted = [
        (count - 1) * step + (g.number(1, step) if padding == "SAME" else length)
        for count, step, length in zip((rows, columns), stride, size, strict=True)
    ]
    if batch * wanted[0] * wanted[1] * channels <= LARGEST:
        layer = g.layer(source, (channels, *size, depth), 0, size[0] * size[1] * depth)
        output = g.network.transpose_conv(source, wanted, **layer, stride=stride, padding=padding)
        g.learn(output, 2 + g.spread[source], exact=False)


def batch_matmul(g: RandomGraph, source: int) -> None:
    """Multiply by one constant matrix, or by one for each index of the batch."""
    shape = g.shape_of(source)
    if not 2 <= len(shape) <= 4:
        return
    columns, transposed = g.number(1, 6), g.often(0.5)
    matrix = (columns, shape[-1]) if transposed else (shape[-1], columns)
    other = g.network.constant(
        g.data((*(1 for _ in shape[:-2]), *matrix), quantized=g.quantized(source)),
        **(g.affine(0.01) if g.quantized(source) else {}),
    )
    affine = g.rescaled(source, 0.5 * np.sqrt(shape[-1]))
    output = g.network.activation((*shape[:-1], columns), **affine)
    g.network.operator("BATCH_MATMUL", [source, other], output, "BatchMatMulOptions", AdjY=transposed)
    g.learn(output, 2 * shape[-1] + g.spread[source], exact=False)


def reduce(g: RandomGraph, source: int) -> None:
    """Add a sum, or a maximum or minimum with the scale of ``source``, along some dimensions."""
    shape, name = g.shape_of(source), g.choice(("SUM", "REDUCE_MAX", "REDUCE_MIN"))
    if not 1 <= len(shape) <= 4:
        return
    axes = g.random.permutation(len(shape))[: g.number(1, len(shape))].tolist()
    count = int(np.prod([shape[axis] for axis in axes]))
    if name == "SUM" and g.spread[source] * count > LARGEST_SPREAD and not g.quantized(source):
        return
    same = g.same_affine(source)
    affine = g.rescaled(source, np.sqrt(count)) if name == "SUM" else same
    output = g.network.reduce(name, source, axes, keep_dims=g.often(0.5), **affine)
    spread = g.spread[source] * (count if name == "SUM" else 1)
    g.learn(output, spread, exact=name != "SUM" and source in g.exact)


def select(g: RandomGraph, source: int) -> None:
    """Select elements of ``source`` or of a constant by an exact comparison of stored numbers."""
    shape = g.shape_of(source)
    comparable = g.scale_of(source) < 1 if g.quantized(source) else source in g.exact
    if not comparable or not 1 <= len(shape) <= 4:
        return
    same = g.same_affine(source)
    other = g.network.constant(g.data([g.choice((size, 1)) for size in shape], quantized=g.quantized(source)), **same)
    name = g.choice(("EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "NOT_EQUAL"))
    condition = g.network.operator(name, [source, other], g.network.activation(shape, dtype="bool"))
    if g.often(0.4):
        condition = g.network.operator("LOGICAL_NOT", [condition], g.network.activation(shape, dtype="bool"))
    operands = [source, other] if g.often(0.5) else [other, source]
    output = g.network.operator("SELECT_V2", [condition, *operands], g.network.like(source, shape), "SelectV2Options")
    g.learn(output, 4 + g.spread[source], exact=source in g.exact)


def arg(g: RandomGraph, source: int) -> None:
    """Add the position of the maximum or minimum, as float32."""
    shape = g.shape_of(source)
    if 1 <= len(shape) <= 4 and (g.quantized(source) or source in g.exact):
        axis, name = g.number(0, len(shape) - 1), g.choice(("ARG_MAX", "ARG_MIN"))
        kept = (*shape[:axis], *shape[axis + 1 :])
        inputs = [source, g.network.integers([axis])]
        kind = "ArgMaxOptions" if name == "ARG_MAX" else "ArgMinOptions"
        places = g.network.operator(name, inputs, g.network.activation(kept, dtype="int32"), kind, OutputType=2)
        output = g.network.operator("CAST", [places], g.network.activation(kept), "CastOptions")
        g.learn(output, float(shape[axis]), exact=True)


def prelu(g: RandomGraph, source: int) -> None:
    """Add a PRELU with a slope for each channel."""
    shape = g.shape_of(source)
    if 1 <= len(shape) <= 4:
        quantized = g.quantized(source)
        slopes = g.network.constant(g.data((shape[-1],), quantized=quantized), **(g.affine(0.01) if quantized else {}))
        output = g.network.operator("PRELU", [source, slopes], g.network.activation(shape, **g.rescaled(source, 1)))
        g.learn(output, 5 * g.spread[source], exact=False)
