"""Operators that make one element of many along some dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite_operators.kind import OperatorKind
from mlfbuild.frontends.tflite_operators.site import Site
from mlfbuild.frontends.tflite_reader import reading
from mlfbuild.graph import Activation, Operator, ops


def _reduction(
    kind: Callable[[tuple[int, ...], bool], Operator],
) -> Callable[[Site], Operator]:
    def read(site: Site) -> Operator:
        with reading(site.place):
            keep_dims = bool(site.read_options("ReducerOptions").KeepDims())
        return kind(tuple(sorted(set(_axes(site)))), keep_dims)

    return read


def _axes(site: Site) -> list[int]:
    """Return the axes in the second input, counted from 0."""
    rank = len(site.input(0).shape)
    axes = [int(axis) for axis in site.constant(1, "axes")]
    for axis in axes:
        if not -rank <= axis < rank:
            raise site.wrong(f"axis {axis} is not a dimension of {site.input(0)}")
    return [axis % rank for axis in axes]


def _arg(kind: Callable[[int], Operator]) -> Callable[[Site], Operator]:
    def read(site: Site) -> Operator:
        axes = _axes(site)
        if len(axes) != 1:
            raise site.wrong(f"has {len(axes)} axes, takes 1")
        return kind(axes[0])

    return read


def _cumsum(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options("CumsumOptions")
        exclusive, reverse = bool(options.Exclusive()), bool(options.Reverse())
    return _arg(lambda axis: ops.Cumsum(axis, exclusive, reverse))(site)


def _l2_normalization(site: Site) -> Operator:
    with reading(site.place):
        activation = site.activation(site.read_options("L2NormOptions").FusedActivationFunction())
    if activation is not Activation.NONE:
        raise site.unsupported(f"fused activation {activation.name} is not supported here; put it behind")
    return ops.L2Normalization()


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.ARG_MAX: OperatorKind(_arg(ops.ArgMax), 1, 1),
    BuiltinOperator.ARG_MIN: OperatorKind(_arg(ops.ArgMin), 1, 1),
    BuiltinOperator.CUMSUM: OperatorKind(_cumsum, 1, 1),
    BuiltinOperator.L2_NORMALIZATION: OperatorKind(_l2_normalization, 1),
    BuiltinOperator.MEAN: OperatorKind(_reduction(ops.Mean), 1, 1),
    BuiltinOperator.REDUCE_ALL: OperatorKind(_reduction(ops.ReduceAll), 1, 1),
    BuiltinOperator.REDUCE_ANY: OperatorKind(_reduction(ops.ReduceAny), 1, 1),
    BuiltinOperator.REDUCE_MAX: OperatorKind(_reduction(ops.ReduceMax), 1, 1),
    BuiltinOperator.REDUCE_MIN: OperatorKind(_reduction(ops.ReduceMin), 1, 1),
    BuiltinOperator.REDUCE_PROD: OperatorKind(_reduction(ops.ReduceProd), 1, 1),
    BuiltinOperator.SUM: OperatorKind(_reduction(ops.Sum), 1, 1),
}
