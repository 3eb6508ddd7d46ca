"""Expand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.frontends.onnx.builder import MAXIMUM_DIMENSIONS
from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import GraphError, ops


def _expand(site: OnnxSite) -> tuple[Value, ...]:
    value = site.held_in_order(0)
    wanted = list(site.integers("shape", 1) or ())
    if len(wanted) > MAXIMUM_DIMENSIONS:
        raise site.unsupported(
            f"a shape of {len(wanted)} dimensions is not supported", f"use at most {MAXIMUM_DIMENSIONS}"
        )
    try:
        shape = np.broadcast_shapes(value.shape, tuple(wanted))
    except ValueError:
        raise GraphError(site.node.place, f"{value.tensor} does not broadcast to {wanted}") from None
    if shape == value.shape:
        return (value,)
    return (value.moved(site.moved(ops.BroadcastTo(), value.tensor, shape)),)


OPERATORS: Mapping[str, Converter] = {
    "Expand": _expand,
}
