"""BROADCAST_TO."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import check_shape
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Operator, ops


def _broadcast_to(site: TfliteSite) -> Operator:
    check_shape(site)
    return ops.BroadcastTo()


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.BROADCAST_TO: OperatorKind(_broadcast_to, 1, 1),
}
