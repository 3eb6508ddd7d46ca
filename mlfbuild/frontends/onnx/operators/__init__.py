"""Each supported operator of ONNX: how a node becomes nodes of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators import (
    activations,
    clamping,
    convolution,
    cumulative,
    einsum,
    elementwise,
    indexing,
    linear,
    movement,
    normalization,
    pieces,
    pooling,
    powers,
    quantization,
    recurrent,
    reductions,
    resize,
    selecting,
    unary,
    unrolled,
    volume,
)
from mlfbuild.frontends.onnx.site import Site

__all__ = ["OPERATORS"]

_FAMILIES = (
    activations, clamping, convolution, cumulative, einsum, elementwise, indexing, linear, movement, normalization,
    pieces, pooling, powers, quantization, recurrent, reductions, resize, selecting, unary, unrolled, volume,
)  # fmt: skip

OPERATORS: Mapping[str, Callable[[Site], tuple[Value, ...]]] = {
    name: convert for family in _FAMILIES for name, convert in family.OPERATORS.items()
}
"""All operators by name; a converter returns the outputs in ONNX's order."""
