"""TopK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.elementwise import from_order, in_order
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import UNSIGNED, DType, GraphError, ops


def _top_k(site: OnnxSite) -> tuple[Value, ...]:
    """Convert TopK; ONNX leaves the order open if ``sorted`` is 0, and it is the same then."""
    value, dtype = site.held(0), site.held(0).dtype
    if dtype in UNSIGNED:
        value = in_order(site, value)
    axis = site.axis(site.integer("axis", -1), value.rank)
    numbers = site.integers("k", 1) if site.opset >= 10 else (site.integer("k", 0),)
    if numbers is None or len(numbers) != 1 or not 0 <= numbers[0] <= value.shape[axis]:
        raise GraphError(site.node.place, f"k is {list(numbers or ())} for {value.shape[axis]} elements")
    order = (*(other for other in value.order if other != axis), axis)
    source = site.builder.stored(value, order)
    positions = checked(site.name, (*source.shape[:-1], numbers[0]), DType.INT32)
    like = replace(positions, dtype=source.dtype, quantization=source.quantization)
    operator = ops.TopkV2(numbers[0], least=not site.integer("largest", 1))
    greatest, at = site.builder.emit(site.name, operator, [source], like, positions)
    wide = site.emit(ops.Cast(), [at], at.shape, DType.INT64)
    values = value.moved(greatest, order)
    if dtype in UNSIGNED:
        values = from_order(site, values, dtype)
    return values, Value(wide, order)


OPERATORS: Mapping[str, Converter] = {
    "TopK": _top_k,
}
