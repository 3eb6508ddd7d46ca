"""Layers with a window or weights, and SOFTMAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tflite.BuiltinOperator import BuiltinOperator
from tflite.FullyConnectedOptionsWeightsFormat import FullyConnectedOptionsWeightsFormat
from tflite.TensorType import TensorType

from mlfbuild.frontends.tflite_operators.kind import OperatorKind
from mlfbuild.frontends.tflite_operators.site import Site
from mlfbuild.frontends.tflite_reader import reading
from mlfbuild.graph import Operator, ops
from mlfbuild.graph.ops.window import Padding, Pair


def _conv2d(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options("Conv2DOptions")
        stride, dilation, padding = _window(site, options)
        activation = site.activation(options.FusedActivationFunction())
        int32_sums = options.QuantizedBiasType() == TensorType.INT32
    image, weights = site.input(0), site.input(1)
    if image.shape[3] != weights.shape[3] and image.shape[3] % weights.shape[3] == 0:
        raise site.unsupported(f"grouped convolution ({weights} over {image}) is not supported")
    return ops.Conv2D(stride, dilation, padding, activation, int32_sums)


def _depthwise_conv2d(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options("DepthwiseConv2DOptions")
        stride, dilation, padding = _window(site, options)
        activation = site.activation(options.FusedActivationFunction())
        # Some converters leave the multiplier out; the weights have it too.
        multiplier = options.DepthMultiplier() or site.input(1).shape[3] // site.input(0).shape[3]
        return ops.DepthwiseConv2D(stride, dilation, padding, activation, multiplier)


def _window(site: Site, options: Any) -> tuple[Pair, Pair, Padding]:
    """Return (stride, dilation, padding) of a convolution."""
    weights = site.input(1)
    if len(weights.shape) != 4:
        raise site.wrong(f"the weights {weights} must have 4 dimensions")
    stride = (options.StrideH(), options.StrideW())
    dilation = (options.DilationHFactor(), options.DilationWFactor())
    filter_size = (weights.shape[1], weights.shape[2])
    return stride, dilation, site.padding(options.Padding(), filter_size, stride, dilation)


def _fully_connected(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options("FullyConnectedOptions")
        if options.WeightsFormat() != FullyConnectedOptionsWeightsFormat.DEFAULT:
            raise site.unsupported("shuffled weights are not supported")
        activation = site.activation(options.FusedActivationFunction())
        int32_sums = options.QuantizedBiasType() == TensorType.INT32
        return ops.FullyConnected(activation, bool(options.KeepNumDims()), int32_sums)


def _pool(kind: type[ops.AveragePool2D | ops.MaxPool2D]) -> Callable[[Site], Operator]:
    def read(site: Site) -> Operator:
        with reading(site.place):
            options = site.read_options("Pool2DOptions")
            filter_size = (options.FilterHeight(), options.FilterWidth())
            stride = (options.StrideH(), options.StrideW())
            padding = site.padding(options.Padding(), filter_size, stride, (1, 1))
            return kind(filter_size, stride, padding, site.activation(options.FusedActivationFunction()))

    return read


def _softmax(site: Site) -> Operator:
    with reading(site.place):
        return ops.Softmax(float(site.read_options("SoftmaxOptions").Beta()))


def _transpose_conv(site: Site) -> Operator:
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
    return ops.TransposeConv(stride, padding, activation)


def _batch_matmul(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options("BatchMatMulOptions")
        return ops.BatchMatmul(bool(options.AdjX()), bool(options.AdjY()))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.AVERAGE_POOL_2D: OperatorKind(_pool(ops.AveragePool2D), 1),
    BuiltinOperator.BATCH_MATMUL: OperatorKind(_batch_matmul, 2),
    BuiltinOperator.CONV_2D: OperatorKind(_conv2d, 3, layer=True),
    BuiltinOperator.DEPTHWISE_CONV_2D: OperatorKind(_depthwise_conv2d, 3, layer=True),
    BuiltinOperator.FULLY_CONNECTED: OperatorKind(_fully_connected, 3, layer=True),
    BuiltinOperator.LOG_SOFTMAX: OperatorKind(lambda _: ops.LogSoftmax(), 1),
    BuiltinOperator.MAX_POOL_2D: OperatorKind(_pool(ops.MaxPool2D), 1),
    BuiltinOperator.SOFTMAX: OperatorKind(_softmax, 1),
    BuiltinOperator.TRANSPOSE_CONV: OperatorKind(_transpose_conv, 3, 1, order=(2, 1, 3, 0), layer=True),
}
