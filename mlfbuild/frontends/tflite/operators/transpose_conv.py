"""TRANSPOSE_CONV."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.frontends.tflite.operators.site import TfliteSite
from mlfbuild.frontends.tflite.reader import reading
from mlfbuild.graph import Operator, ops


def _transpose_conv(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("TransposeConvOptions")
        stride, mode = (options.StrideH(), options.StrideW()), options.Padding()
        activation = site.activation(options.FusedActivationFunction())
    weights, wanted = site.input(1), site.constant(3, "output shape").tolist()
    if len(weights.shape) != 4:
        raise site.wrong(f"the weights {weights} must have 4 dimensions")
    if wanted != list(site.output().shape):
        raise site.wrong(f"{site.output()} should have the shape {wanted}")
    padding = site.padding(mode, (weights.shape[1], weights.shape[2]), stride, (1, 1), site.output())
    return ops.TransposeConv(stride, padding, activation, rounded_product=site.unsigned)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.TRANSPOSE_CONV: OperatorKind(_transpose_conv, 3, 1, order=(2, 1, 3, 0), layer=True),
}
