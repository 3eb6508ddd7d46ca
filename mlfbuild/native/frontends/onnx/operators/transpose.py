"""Transpose."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value, as_onnx
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import GraphError


def _transpose(site: OnnxSite) -> tuple[Value, ...]:
    """Return the same tensor with another order; no element is moved yet."""
    value = site.held(0)
    axes = site.integers("perm") or tuple(reversed(as_onnx(value.rank)))
    if sorted(axes) != list(as_onnx(value.rank)):
        raise GraphError(site.node.place, f"perm {list(axes)} does not order {value.rank} dimensions")
    return (value.moved(value.tensor, tuple(axes.index(axis) for axis in value.order)),)


OPERATORS: Mapping[str, Converter] = {
    "Transpose": _transpose,
}
