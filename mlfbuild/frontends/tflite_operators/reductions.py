"""Operators that make one element of many along some dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite_operators.kind import OperatorKind
from mlfbuild.frontends.tflite_operators.site import Site
from mlfbuild.frontends.tflite_reader import reading
from mlfbuild.graph import Operator, ops


def _mean(site: Site) -> Operator:
    with reading(site.place):
        keep_dims = bool(site.read_options("ReducerOptions").KeepDims())
    rank = len(site.input(0).shape)
    axes = [int(axis) for axis in site.constant(1, "axes")]
    for axis in axes:
        if not -rank <= axis < rank:
            raise site.wrong(f"axis {axis} is not a dimension of {site.input(0)}")
    return ops.Mean(tuple(sorted({axis % rank for axis in axes})), keep_dims)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.MEAN: OperatorKind(_mean, 1, 1),
}
