"""REVERSE_V2."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import dimension
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Operator, ops


def _reverse(site: TfliteSite) -> Operator:
    rank = len(site.input(0).shape)
    return ops.ReverseV2(tuple(dimension(site, int(axis), rank) for axis in site.constant(1, "axes")))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.REVERSE_V2: OperatorKind(_reverse, 1, 1),
}
