"""TopK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter
from mlfbuild.native.frontends.onnx.conversion.elementwise import from_order, in_order
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import UNSIGNED, DType, GraphError, ops


def _top_k(op: OpContext) -> tuple[Value, ...]:
    """Convert TopK; ONNX leaves the order open if ``sorted`` is 0, and it is the same then."""
    value, dtype = op.held(0), op.held(0).dtype
    if dtype in UNSIGNED:
        value = in_order(op, value)
    axis = op.axis(op.integer("axis", -1), value.rank)
    numbers = op.integers("k", 1) if op.opset >= 10 else (op.integer("k", 0),)
    if numbers is None or len(numbers) != 1 or not 0 <= numbers[0] <= value.shape[axis]:
        raise GraphError(op.node.place, f"k is {list(numbers or ())} for {value.shape[axis]} elements")
    order = (*(other for other in value.order if other != axis), axis)
    source = op.builder.stored(value, order)
    positions = checked(op.name, (*source.shape[:-1], numbers[0]), DType.INT32)
    like = replace(positions, dtype=source.dtype, quantization=source.quantization)
    operator = ops.TopkV2(numbers[0], least=not op.integer("largest", 1))
    greatest, at = op.builder.emit(op.name, operator, [source], like, positions)
    wide = op.emit(ops.Cast(), [at], at.shape, DType.INT64)
    values = value.moved(greatest, order)
    if dtype in UNSIGNED:
        values = from_order(op, values, dtype)
    return values, Value(wide, order)


OPERATORS: Mapping[str, Converter] = {
    "TopK": _top_k,
}
