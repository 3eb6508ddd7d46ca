"""TILE."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import integers
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Operator, ops


def _tile(site: TfliteSite) -> Operator:
    return ops.Tile(tuple(integers(site, 1, "multiples", len(site.input(0).shape))))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.TILE: OperatorKind(_tile, 1, 1),
}
