"""TopK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mlfbuild.frontends.onnx.builder import checked
from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import DType, GraphError, ops


def _top_k(site: OnnxSite) -> tuple[Value, ...]:
    """Convert TopK; ONNX leaves the order open if ``sorted`` is 0, and it is the same then."""
    value = site.held(0)
    axis = site.axis(site.integer("axis", -1), value.rank)
    numbers = site.integers("k", 1) if site.opset >= 10 else (site.integer("k", 0),)
    if numbers is None or len(numbers) != 1 or not 0 <= numbers[0] <= value.shape[axis]:
        raise GraphError(site.node.place, f"k is {list(numbers or ())} for {value.shape[axis]} elements")
    order = (*(other for other in value.order if other != axis), axis)
    source = site.builder.stored(value, order)
    positions = checked(site.name, (*source.shape[:-1], numbers[0]), DType.INT32)
    values = replace(positions, dtype=source.dtype, quantization=source.quantization)
    operator = ops.TopkV2(numbers[0], least=not site.integer("largest", 1))
    greatest, at = site.builder.emit(site.name, operator, [source], values, positions)
    wide = site.emit(ops.Cast(), [at], at.shape, DType.INT64)
    return value.moved(greatest, order), Value(wide, order)


OPERATORS: Mapping[str, Converter] = {
    "TopK": _top_k,
}
