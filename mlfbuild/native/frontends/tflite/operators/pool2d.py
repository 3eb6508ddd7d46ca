"""AVERAGE_POOL_2D and MAX_POOL_2D."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops

_Pool = TypeVar("_Pool", ops.AveragePool2D, ops.MaxPool2D)


def _pool(kind: type[_Pool]) -> Callable[[TfliteSite], _Pool]:
    def read(site: TfliteSite) -> _Pool:
        with reading(site.place):
            options = site.read_options("Pool2DOptions")
            filter_size = (options.FilterHeight(), options.FilterWidth())
            stride = (options.StrideH(), options.StrideW())
            padding = site.padding(options.Padding(), filter_size, stride, (1, 1))
            return kind(filter_size, stride, padding, site.activation(options.FusedActivationFunction()))

    return read


def _average_pool(site: TfliteSite) -> Operator:
    return replace(_pool(ops.AveragePool2D)(site), half_up=site.unsigned)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.AVERAGE_POOL_2D: OperatorKind(_average_pool, 1),
    BuiltinOperator.MAX_POOL_2D: OperatorKind(_pool(ops.MaxPool2D), 1),
}
