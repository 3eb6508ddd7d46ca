"""Where and Trilu."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter
from mlfbuild.native.frontends.onnx.conversion.elementwise import aligned, chosen, compared
from mlfbuild.native.frontends.onnx.layout import Value, as_onnx
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, DType, GraphError, ops


def _where(op: OpContext) -> tuple[Value, ...]:
    """Select elements of X where the condition is true, else of Y."""
    chosen_integers = _integers(op)
    if chosen_integers is not None:
        return (chosen_integers,)
    condition, first, second = (op.value(index) for index in range(3))
    return (chosen(op, condition, first, second),)


def _integers(op: OpContext) -> Value | None:
    """Select quantised elements, which are first converted to the scale of the output; ``None`` if there is none."""
    target, values = op.held_target, [op.held(1), op.held(2)]
    if target is None or op.target is None or any(value.quantization is None for value in values):
        return None
    brought = [op.brought_to(value.tensor, target, op.target.holder) for value in values]
    if None in brought:
        return None
    first, second = (
        value.moved(tensor, value.order) for value, tensor in zip(values, brought, strict=True) if tensor is not None
    )
    order, tensors, shape = aligned(op, (op.value(0), first, second))
    return op.real(op.emit(ops.SelectV2(), tensors, shape, tensors[1].dtype, target), order)


def _trilu(op: OpContext) -> tuple[Value, ...]:
    """Keep the elements above (or below) a diagonal of the last two dimensions and set the others to 0."""
    value = op.value(0)
    if value.rank < 2:
        raise GraphError(op.node.place, f"takes matrices, not {value.tensor}")
    op.check_room(value.shape[-2:], np.dtype(np.int64).itemsize)
    rows, columns = np.arange(value.shape[-2])[:, np.newaxis], np.arange(value.shape[-1])
    upper = op.integer("upper", 1) != 0
    if op.has(1) and not op.is_constant(1):
        kept = _beside(op, op.value(1), columns - rows, upper)
    else:
        diagonal = op.constant_integer(1, "diagonal") if op.has(1) else 0
        mask = columns - rows >= diagonal if upper else columns - rows <= diagonal
        kept = Value(op.weights("mask", mask), as_onnx(2))
    zero = Value(op.weights("zero", np.zeros((), value.dtype.numpy)), ())
    return (chosen(op, kept, value, zero),)


def _beside(op: OpContext, diagonal: Value, distances: Array, upper: bool) -> Value:
    """Return which elements, at ``distances`` from the main diagonal, are kept with the computed ``diagonal``."""
    if diagonal.dtype is not DType.INT64 or diagonal.tensor.elements != 1 or diagonal.rank > 1:
        raise GraphError(op.node.place, f"the diagonal {diagonal.tensor} is not one int64")
    places = Value(op.weights("distances", distances.astype(np.int64)), as_onnx(2))
    return compared(op, ops.GreaterEqual() if upper else ops.LessEqual(), places, diagonal)


OPERATORS: Mapping[str, Converter] = {
    "Trilu": _trilu,
    "Where": _where,
}
