"""Sqrt."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.unary import with_integers
from mlfbuild.native.graph import ops

OPERATORS: Mapping[str, Converter] = {
    "Sqrt": with_integers(ops.Sqrt()),
}
