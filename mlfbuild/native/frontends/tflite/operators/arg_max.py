"""ARG_MAX and ARG_MIN."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import one_axis
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Operator, ops


def _arg(kind: Callable[[int], Operator]) -> Callable[[TfliteSite], Operator]:
    def read(site: TfliteSite) -> Operator:
        return kind(one_axis(site))

    return read


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.ARG_MAX: OperatorKind(_arg(ops.ArgMax), 1, 1),
    BuiltinOperator.ARG_MIN: OperatorKind(_arg(ops.ArgMin), 1, 1),
}
