"""CUMSUM."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import one_axis
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _cumsum(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("CumsumOptions")
        exclusive, reverse = bool(options.Exclusive()), bool(options.Reverse())
    return ops.Cumsum(one_axis(site), exclusive, reverse)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.CUMSUM: OperatorKind(_cumsum, 1, 1),
}
