"""LEAKY_RELU."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _leaky_relu(site: TfliteSite) -> Operator:
    with reading(site.place):
        return ops.LeakyRelu(float(site.read_options("LeakyReluOptions").Alpha()))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.LEAKY_RELU: OperatorKind(_leaky_relu, 1),
}
