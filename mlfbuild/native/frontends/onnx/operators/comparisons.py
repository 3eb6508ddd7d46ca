"""Equal, Greater, GreaterOrEqual, Less, LessOrEqual, IsInf and IsNaN."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    of_one_tensor,
    relation,
    unary,
)
from mlfbuild.native.frontends.onnx.operators.elementwise import compared
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Operator, Tensor, ops


def _comparison(operator: Operator) -> Converter:
    def convert(site: OnnxSite) -> tuple[Value, ...]:
        return (compared(site, operator, site.value(0), site.value(1)),)

    return convert


def _is_nan(site: OnnxSite, x: Tensor) -> Tensor:
    return relation(site, ops.NotEqual(), x, x)


def _is_inf(site: OnnxSite) -> tuple[Value, ...]:
    positive, negative = site.integer("detect_positive", 1), site.integer("detect_negative", 1)

    def compute(site: OnnxSite, x: Tensor) -> Tensor:
        if positive and negative:
            return relation(site, ops.Equal(), unary(site, ops.Abs(), x), math.inf)
        if positive or negative:
            return relation(site, ops.Equal(), x, math.inf if positive else -math.inf)
        raise site.unsupported("neither detect_positive nor detect_negative is set")

    return of_one_tensor(compute)(site)


OPERATORS: Mapping[str, Converter] = {
    "Equal": _comparison(ops.Equal()),
    "Greater": _comparison(ops.Greater()),
    "GreaterOrEqual": _comparison(ops.GreaterEqual()),
    "IsInf": _is_inf,
    "IsNaN": of_one_tensor(_is_nan),
    "Less": _comparison(ops.Less()),
    "LessOrEqual": _comparison(ops.LessEqual()),
}
