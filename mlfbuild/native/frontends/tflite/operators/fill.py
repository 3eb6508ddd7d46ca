"""FILL."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import check_shape
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Operator, ops


def _fill(site: TfliteSite) -> Operator:
    check_shape(site)
    return ops.Fill()


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.FILL: OperatorKind(_fill, 1, 1, order=(1, 0)),
}
