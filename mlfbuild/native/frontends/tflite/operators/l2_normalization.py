"""L2_NORMALIZATION."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Activation, Operator, ops


def _l2_normalization(site: TfliteSite) -> Operator:
    with reading(site.place):
        activation = site.activation(site.read_options("L2NormOptions").FusedActivationFunction())
    if activation is not Activation.NONE:
        raise site.unsupported(
            f"fused activation {activation.name} is not supported", "use a separate operator for the activation"
        )
    return ops.L2Normalization(shifted=site.unsigned)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.L2_NORMALIZATION: OperatorKind(_l2_normalization, 1),
}
