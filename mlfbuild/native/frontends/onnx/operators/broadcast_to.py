"""Expand and Range."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.builder import MAXIMUM_DIMENSIONS
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, add, cast, multiply
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, GraphError, ops


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


def _range(site: OnnxSite) -> tuple[Value, ...]:
    """Count from a computed start in computed steps, as far as the declared shape says."""
    numbers = site.tensor(0), site.tensor(2)
    if any(tensor.elements != 1 for tensor in numbers):
        raise GraphError(site.node.place, f"the start {numbers[0]} and the step {numbers[1]} are not one number each")
    start, step = (site.builder.reshaped(tensor, ()) for tensor in numbers)
    (count,) = site.declared(next(index for index in range(3) if not site.is_constant(index)), "limits", 1)
    if start.dtype is not step.dtype or start.dtype not in {DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32}:
        raise site.type_unsupported(start, "int16, int32, int64 or float32 for all inputs")
    site.not_read(1)
    wide = DType.INT32 if start.dtype is DType.INT16 else start.dtype
    site.check_room((count,), wide.size)
    places = site.weights("places", np.arange(count).astype(wide.numpy))
    distances = multiply(site, places, cast(site, step, wide))
    return (site.made(cast(site, add(site, distances, cast(site, start, wide)), start.dtype)),)


OPERATORS: Mapping[str, Converter] = {
    "Expand": _expand,
    "Range": _range,
}
