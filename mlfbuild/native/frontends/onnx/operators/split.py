"""Split."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import GraphError, ops


def _split(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held(0)
    axis = site.axis(site.integer("axis", 0), value.rank)
    size, count = value.shape[axis], len(site.node.outputs)
    lengths = site.integers("split", 1)
    if site.integer("num_outputs", count) != count:
        raise GraphError(site.node.place, f"attribute num_outputs is {site.integer('num_outputs', 0)}, has {count}")
    if lengths is None:
        longest = -(-size // count)
        lengths = (*(longest for _ in range(count - 1)), size - longest * (count - 1))
    if len(lengths) != count or sum(lengths) != size or min(lengths) < 0:
        raise GraphError(site.node.place, f"{list(lengths)} do not make {count} parts of {size} elements")
    if count == 1:
        return (value,)
    stored = value.stored(axis)
    shape = value.tensor.shape
    shapes = [(*shape[:stored], length, *shape[stored + 1 :]) for length in lengths]
    return tuple(value.moved(part, value.order) for part in site.outputs(ops.Split(stored), value.tensor, shapes))


OPERATORS: Mapping[str, Converter] = {
    "Split": _split,
}
