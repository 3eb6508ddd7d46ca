"""GELU."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _gelu(site: TfliteSite) -> Operator:
    with reading(site.place):
        return ops.Gelu(bool(site.read_options("GeluOptions").Approximate()))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.GELU: OperatorKind(_gelu, 1),
}
