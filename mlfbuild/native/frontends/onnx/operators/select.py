"""Where and Trilu."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value, as_onnx
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.elementwise import aligned, chosen, compared
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, DType, GraphError, ops


def _where(site: OnnxSite) -> tuple[Value, ...]:
    """Select elements of X where the condition is true, else of Y."""
    chosen_integers = _integers(site)
    if chosen_integers is not None:
        return (chosen_integers,)
    condition, first, second = (site.value(index) for index in range(3))
    return (chosen(site, condition, first, second),)


def _integers(site: OnnxSite) -> Value | None:
    """Select quantised elements, which are first converted to the scale of the output; ``None`` if there is none."""
    target, values = site.held_target, [site.held(1), site.held(2)]
    if target is None or site.target is None or any(value.quantization is None for value in values):
        return None
    brought = [site.brought_to(value.tensor, target, site.target.holder) for value in values]
    if None in brought:
        return None
    first, second = (
        value.moved(tensor, value.order) for value, tensor in zip(values, brought, strict=True) if tensor is not None
    )
    order, tensors, shape = aligned(site, (site.value(0), first, second))
    return site.real(site.emit(ops.SelectV2(), tensors, shape, tensors[1].dtype, target), order)


def _trilu(site: OnnxSite) -> tuple[Value, ...]:
    """Keep the elements above (or below) a diagonal of the last two dimensions and set the others to 0."""
    value = site.value(0)
    if value.rank < 2:
        raise GraphError(site.node.place, f"takes matrices, not {value.tensor}")
    site.check_room(value.shape[-2:], np.dtype(np.int64).itemsize)
    rows, columns = np.arange(value.shape[-2])[:, np.newaxis], np.arange(value.shape[-1])
    upper = site.integer("upper", 1) != 0
    if site.has(1) and not site.is_constant(1):
        kept = _beside(site, site.value(1), columns - rows, upper)
    else:
        diagonal = site.constant_integer(1, "diagonal") if site.has(1) else 0
        mask = columns - rows >= diagonal if upper else columns - rows <= diagonal
        kept = Value(site.weights("mask", mask), as_onnx(2))
    zero = Value(site.weights("zero", np.zeros((), value.dtype.numpy)), ())
    return (chosen(site, kept, value, zero),)


def _beside(site: OnnxSite, diagonal: Value, distances: Array, upper: bool) -> Value:
    """Return which elements, at ``distances`` from the main diagonal, are kept with the computed ``diagonal``."""
    if diagonal.dtype is not DType.INT64 or diagonal.tensor.elements != 1 or diagonal.rank > 1:
        raise GraphError(site.node.place, f"the diagonal {diagonal.tensor} is not one int64")
    places = Value(site.weights("distances", distances.astype(np.int64)), as_onnx(2))
    return compared(site, ops.GreaterEqual() if upper else ops.LessEqual(), places, diagonal)


OPERATORS: Mapping[str, Converter] = {
    "Trilu": _trilu,
    "Where": _where,
}
