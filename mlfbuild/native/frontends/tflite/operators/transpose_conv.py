"""TRANSPOSE_CONV."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import DType, Operator, ops


def _transpose_conv(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("TransposeConvOptions")
        stride, mode = (options.StrideH(), options.StrideW()), options.Padding()
        activation = site.activation(options.FusedActivationFunction())
    weights, wanted = site.input(1), _output_shape(site)
    if len(weights.shape) != 4:
        raise site.wrong(f"the weights {weights} must have 4 dimensions")
    if wanted != list(site.output().shape):
        raise site.misshapen(wanted)
    padding = site.padding(mode, (weights.shape[1], weights.shape[2]), stride, (1, 1), site.output())
    return ops.TransposeConv(stride, padding, activation, rounded_product=site.unsigned)


def _output_shape(site: TfliteSite) -> list[int]:
    """Return the output's shape; if the file computes it, that of the output tensor, which TFLM takes as well."""
    shape = site.input(3)
    if shape.data is None and shape.dtype is DType.INT32 and shape.shape == (4,):
        return list(site.output().shape)
    sizes: list[int] = site.constant(3, "output shape").tolist()
    return sizes


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.TRANSPOSE_CONV: OperatorKind(_transpose_conv, 3, 1, order=(2, 1, 3, 0), layer=True),
}
