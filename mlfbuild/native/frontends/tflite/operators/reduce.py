"""SUM, MEAN and the REDUCE operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import axes
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _reduction(
    kind: Callable[[tuple[int, ...], bool], Operator],
) -> Callable[[TfliteSite], Operator]:
    def read(site: TfliteSite) -> Operator:
        with reading(site.place):
            keep_dims = bool(site.read_options("ReducerOptions").KeepDims())
        return kind(tuple(sorted(set(axes(site)))), keep_dims)

    return read


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.MEAN: OperatorKind(_reduction(ops.Mean), 1, 1),
    BuiltinOperator.REDUCE_ALL: OperatorKind(_reduction(ops.ReduceAll), 1, 1),
    BuiltinOperator.REDUCE_ANY: OperatorKind(_reduction(ops.ReduceAny), 1, 1),
    BuiltinOperator.REDUCE_MAX: OperatorKind(_reduction(ops.ReduceMax), 1, 1),
    BuiltinOperator.REDUCE_MIN: OperatorKind(_reduction(ops.ReduceMin), 1, 1),
    BuiltinOperator.REDUCE_PROD: OperatorKind(_reduction(ops.ReduceProd), 1, 1),
    BuiltinOperator.SUM: OperatorKind(_reduction(ops.Sum), 1, 1),
}
