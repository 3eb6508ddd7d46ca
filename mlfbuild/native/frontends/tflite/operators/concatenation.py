"""CONCATENATION."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import dimension
from mlfbuild.native.frontends.tflite.operators.kind import ANY_NUMBER, OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Activation, Operator, ops


def _concatenation(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("ConcatenationOptions")
        axis, activation = options.Axis(), site.activation(options.FusedActivationFunction())
    if activation is not Activation.NONE:
        raise site.unsupported(
            f"fused activation {activation.name} is not supported", "use a separate operator for the activation"
        )
    return ops.Concatenation(dimension(site, axis, len(site.input(0).shape)))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.CONCATENATION: OperatorKind(_concatenation, ANY_NUMBER),
}
