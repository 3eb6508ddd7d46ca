"""ADD_N."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import ANY_NUMBER, OperatorKind
from mlfbuild.native.graph import ops

KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.ADD_N: OperatorKind(lambda _: ops.AddN(), ANY_NUMBER),
}
