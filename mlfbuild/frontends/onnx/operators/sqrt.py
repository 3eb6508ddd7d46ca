"""Sqrt."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.frontends.onnx.operators.unary import with_integers
from mlfbuild.graph import ops

OPERATORS: Mapping[str, Converter] = {
    "Sqrt": with_integers(ops.Sqrt()),
}
