"""Sin, Cos and Tan."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    divide,
    of_one_tensor,
    unary,
)
from mlfbuild.native.frontends.onnx.operators.unary import unary_converter
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Tensor, ops


def _tangent(site: OnnxSite, x: Tensor) -> Tensor:
    return divide(site, unary(site, ops.Sin(), x), unary(site, ops.Cos(), x))


OPERATORS: Mapping[str, Converter] = {
    "Cos": unary_converter(ops.Cos()),
    "Sin": unary_converter(ops.Sin()),
    "Tan": of_one_tensor(_tangent),
}
