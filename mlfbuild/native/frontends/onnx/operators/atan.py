"""Asin, Acos, Atan, Sinh, Cosh, Asinh, Acosh and Atanh."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.unary import unary_converter
from mlfbuild.native.graph import ops

OPERATORS: Mapping[str, Converter] = {
    "Acos": unary_converter(ops.Acos()),
    "Acosh": unary_converter(ops.Acosh()),
    "Asin": unary_converter(ops.Asin()),
    "Asinh": unary_converter(ops.Asinh()),
    "Atan": unary_converter(ops.Atan()),
    "Atanh": unary_converter(ops.Atanh()),
    "Cosh": unary_converter(ops.Cosh()),
    "Sinh": unary_converter(ops.Sinh()),
}
