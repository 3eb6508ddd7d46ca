"""And, Or, Xor and Not."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.elementwise import combined
from mlfbuild.native.frontends.onnx.operators.unary import unary_converter
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, Operator, ops


def _logical(operator: Operator) -> Converter:
    def convert(site: OnnxSite) -> tuple[Value, ...]:
        if site.value(0).dtype is not DType.BOOL:
            raise site.type_unsupported(site.value(0).tensor, "bool")
        return (combined(site, operator, site.value(0), site.value(1), dtype=DType.BOOL),)

    return convert


OPERATORS: Mapping[str, Converter] = {
    "And": _logical(ops.LogicalAnd()),
    "Not": unary_converter(ops.LogicalNot()),
    "Or": _logical(ops.LogicalOr()),
    "Xor": _logical(ops.NotEqual()),
}
