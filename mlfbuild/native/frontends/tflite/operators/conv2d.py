"""CONV_2D."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator
from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite.operators.convolution import window
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _conv2d(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("Conv2DOptions")
        stride, dilation, padding = window(site, options)
        activation = site.activation(options.FusedActivationFunction())
        int32_sums = options.QuantizedBiasType() == TensorType.INT32
    image, weights = site.input(0), site.input(1)
    if image.shape[3] != weights.shape[3] and image.shape[3] % weights.shape[3] == 0:
        raise site.unsupported(f"grouped convolution ({weights} over {image}) is not supported")
    return ops.Conv2D(stride, dilation, padding, activation, int32_sums, rounded_product=site.unsigned)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.CONV_2D: OperatorKind(_conv2d, 3, layer=True),
}
