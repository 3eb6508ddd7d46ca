"""Div and Reciprocal."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    divide,
    of_one_tensor,
)
from mlfbuild.native.frontends.onnx.operators.elementwise import with_integer_form
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Tensor, ops


def _reciprocal(site: OnnxSite, x: Tensor) -> Tensor:
    return divide(site, site.number("one", 1.0), x)


OPERATORS: Mapping[str, Converter] = {
    "Div": with_integer_form(ops.Div()),
    "Reciprocal": of_one_tensor(_reciprocal),
}
