"""Erf."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.unary import unary_converter
from mlfbuild.native.graph import ops

OPERATORS: Mapping[str, Converter] = {
    "Erf": unary_converter(ops.Erf()),
}
