"""TRANSPOSE."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import dimension, integers
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Operator, ops


def _transpose(site: TfliteSite) -> Operator:
    rank = len(site.input(0).shape)
    return ops.Transpose(tuple(dimension(site, axis, rank) for axis in integers(site, 1, "permutation", rank)))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.TRANSPOSE: OperatorKind(_transpose, 1, 1),
}
