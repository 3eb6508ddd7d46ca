"""QUANTIZE."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.graph import ops

KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.QUANTIZE: OperatorKind(lambda _: ops.Quantize(), 1),
}
