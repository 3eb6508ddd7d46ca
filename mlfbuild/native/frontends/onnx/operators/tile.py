"""Tile."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import GraphError, ops


def _tile(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held(0)
    repeats = list(site.integers("repeats", 1) or ())
    if len(repeats) != value.rank or min(repeats, default=1) < 0:
        raise GraphError(site.node.place, f"repeats {repeats} do not fit {value.tensor}")
    tensor, multiples = value.tensor, [repeats[axis] for axis in value.order]
    repeated = [axis for axis, count in enumerate(multiples) if count != 1]
    for start in range(0, len(repeated), _TILED_AT_ONCE):
        now = repeated[start : start + _TILED_AT_ONCE]
        counts = tuple(count if axis in now else 1 for axis, count in enumerate(multiples))
        shape = [size * count for size, count in zip(tensor.shape, counts, strict=True)]
        tensor = site.moved(ops.Tile(counts), tensor, shape)
    return (value.moved(tensor, value.order),)


_TILED_AT_ONCE = 2
"""Each repeated dimension takes two dimensions of the kernel that moves elements, whose number is limited."""


OPERATORS: Mapping[str, Converter] = {
    "Tile": _tile,
}
