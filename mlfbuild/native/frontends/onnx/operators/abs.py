"""Abs, Neg and Sign."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.unary import of_integers_too, with_integers
from mlfbuild.native.graph import ops

OPERATORS: Mapping[str, Converter] = {
    "Abs": with_integers(ops.Abs()),
    "Neg": with_integers(ops.Neg()),
    "Sign": of_integers_too(ops.Sign()),
}
