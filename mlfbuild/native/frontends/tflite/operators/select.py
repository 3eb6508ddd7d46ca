"""SELECT and SELECT_V2."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.graph import ops

KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.SELECT: OperatorKind(lambda _: ops.Select(), 3),
    BuiltinOperator.SELECT_V2: OperatorKind(lambda _: ops.SelectV2(), 3),
}
