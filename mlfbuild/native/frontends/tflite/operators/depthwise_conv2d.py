"""DEPTHWISE_CONV_2D."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.convolution import window
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _depthwise_conv2d(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("DepthwiseConv2DOptions")
        stride, dilation, padding = window(site, options)
        activation = site.activation(options.FusedActivationFunction())
        # Some converters omit the multiplier; it also follows from the weights.
        multiplier = options.DepthMultiplier() or site.input(1).shape[3] // site.input(0).shape[3]
        return ops.DepthwiseConv2D(stride, dilation, padding, activation, multiplier, rounded_product=site.unsigned)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.DEPTHWISE_CONV_2D: OperatorKind(_depthwise_conv2d, 3, layer=True),
}
