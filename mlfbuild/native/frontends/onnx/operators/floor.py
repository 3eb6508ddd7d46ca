"""Floor, Ceil and Round."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.operators.unary import unary_converter
from mlfbuild.native.graph import ops

OPERATORS: Mapping[str, Converter] = {
    "Ceil": unary_converter(ops.Ceil()),
    "Floor": unary_converter(ops.Floor()),
    "Round": unary_converter(ops.Round()),
}
