"""Mul."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.elementwise import with_integer_form
from mlfbuild.native.graph import ops

OPERATORS: Mapping[str, Converter] = {
    "Mul": with_integer_form(ops.Mul()),
}
