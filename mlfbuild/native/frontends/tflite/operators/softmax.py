"""SOFTMAX."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _softmax(site: TfliteSite) -> Operator:
    with reading(site.place):
        return ops.Softmax(float(site.read_options("SoftmaxOptions").Beta()))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.SOFTMAX: OperatorKind(_softmax, 1),
}
