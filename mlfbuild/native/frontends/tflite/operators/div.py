"""DIV."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _div(site: TfliteSite) -> Operator:
    with reading(site.place):
        activation = site.activation(site.read_options("DivOptions").FusedActivationFunction())
    return ops.Div(activation, rounded_quotient=site.unsigned)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.DIV: OperatorKind(_div, 2),
}
