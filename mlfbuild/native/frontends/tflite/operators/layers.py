"""Layers: operators whose weights are constant, and those that move a window over an image."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.FullyConnectedOptionsWeightsFormat import FullyConnectedOptionsWeightsFormat
from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite.operators.row import TfliteRow
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Activation, DType, Operator, ops
from mlfbuild.native.graph.bases import Padding, Pair

_WINDOW = ("StrideH", "StrideW", "DilationHFactor", "DilationWFactor", "Padding", "FusedActivationFunction")
_POOL = ("Pool2DOptions", "FilterHeight", "FilterWidth", "StrideH", "StrideW", "Padding", "FusedActivationFunction")


def _filter_size(site: TfliteSite) -> Pair:
    weights = site.input(1)
    if len(weights.shape) != 4:
        raise site.wrong(f"the weights {weights} must have 4 dimensions")
    return weights.shape[1], weights.shape[2]


def _window(
    site: TfliteSite, rows: int, columns: int, row_step: int, column_step: int, mode: int, activation: int
) -> tuple[Pair, Pair, Padding, Activation]:
    """Return (stride, dilation, padding, activation) of a convolution, from the fields ``_WINDOW``."""
    filter_size, stride, dilation = _filter_size(site), (rows, columns), (row_step, column_step)
    return stride, dilation, site.padding(mode, filter_size, stride, dilation), site.activation(activation)


def _conv2d(site: TfliteSite, bias_type: int, *fields: int) -> Operator:
    window = _window(site, *fields)
    image, weights = site.input(0), site.input(1)
    if image.shape[3] != weights.shape[3] > 0 and image.shape[3] % weights.shape[3] == 0:
        # The file is valid, because TensorFlow writes grouped convolutions so; only this compiler lacks them.
        raise site.unsupported(f"grouped convolution ({weights} over {image}) is not supported")
    return ops.Conv2D(*window, bias_type == TensorType.INT32, rounded_product=site.unsigned)


def _depthwise_conv2d(site: TfliteSite, multiplier: int, *fields: int) -> Operator:
    window = _window(site, *fields)
    # Some converters omit the multiplier; it also follows from the weights.
    multiplier = multiplier or site.input(1).shape[3] // max(site.input(0).shape[3], 1)
    return ops.DepthwiseConv2D(*window, multiplier, rounded_product=site.unsigned)


def _transpose_conv(site: TfliteSite, rows: int, columns: int, mode: int, code: int) -> Operator:
    stride, activation = (rows, columns), site.activation(code)
    wanted = _output_shape(site)
    filter_size = _filter_size(site)
    if wanted != list(site.output().shape):
        raise site.misshapen(wanted)
    # TRANSPOSE_CONV has the padding of the convolution from its output to its input.
    padding = site.padding(mode, filter_size, stride, (1, 1), site.output())
    return ops.TransposeConv(stride, padding, activation, rounded_product=site.unsigned)


def _output_shape(site: TfliteSite) -> list[int]:
    """Return the output's shape; if the file computes it, that of the output tensor, which TFLM takes as well."""
    shape = site.input(3)
    if shape.data is None and shape.dtype is DType.INT32 and shape.shape == (4,):
        return list(site.output().shape)
    sizes: list[int] = site.constant(3, "output shape").tolist()
    return sizes


def _fully_connected(site: TfliteSite, layout: int, code: int, keep_dims: object, bias_type: int) -> Operator:
    if layout != FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise site.unsupported(
            "shuffled weights are not supported", "convert the model with weights in the default format"
        )
    # Without a bias, the type in the options decides the width of the sums.
    activation, int32_sums = site.activation(code), bias_type == TensorType.INT32
    return ops.FullyConnected(activation, bool(keep_dims), int32_sums, in_double=site.unsigned)


def _pool(
    site: TfliteSite, height: int, width: int, rows: int, columns: int, mode: int, activation: int
) -> tuple[Pair, Pair, Padding, Activation]:
    """Return (filter size, stride, padding, activation) of a pool, from the fields ``_POOL``."""
    filter_size, stride = (height, width), (rows, columns)
    return filter_size, stride, site.padding(mode, filter_size, stride, (1, 1)), site.activation(activation)


def _flags(site: TfliteSite, align_corners: object, half_pixel_centers: object) -> tuple[bool, bool]:
    """Return the flags of a resize whose output has the size in its second input."""
    wanted, image = site.constant(1, "size").tolist(), site.input(0).shape
    if list(site.output().shape[1:3]) != wanted:
        raise site.misshapen((*image[:1], *wanted, *image[3:]))
    return bool(align_corners), bool(half_pixel_centers)


ROWS: Mapping[str, TfliteRow] = {
    "AVERAGE_POOL_2D": TfliteRow(
        lambda site, *fields: ops.AveragePool2D(*_pool(site, *fields), half_up=site.unsigned), options=_POOL
    ),
    "BATCH_MATMUL": TfliteRow(
        lambda _, adj_x, adj_y: ops.BatchMatmul(bool(adj_x), bool(adj_y)), 2,
        options=("BatchMatMulOptions", "AdjX", "AdjY"),
    ),
    "CONV_2D": TfliteRow(_conv2d, 3, options=("Conv2DOptions", "QuantizedBiasType", *_WINDOW), layer=True),
    "DEPTHWISE_CONV_2D": TfliteRow(
        _depthwise_conv2d, 3, options=("DepthwiseConv2DOptions", "DepthMultiplier", *_WINDOW), layer=True
    ),
    "FULLY_CONNECTED": TfliteRow(
        _fully_connected, 3, layer=True,
        options=("FullyConnectedOptions", "WeightsFormat", "FusedActivationFunction", "KeepNumDims",
                 "QuantizedBiasType"),
    ),
    "MAX_POOL_2D": TfliteRow(lambda site, *fields: ops.MaxPool2D(*_pool(site, *fields)), options=_POOL),
    "RESIZE_BILINEAR": TfliteRow(
        lambda site, *fields: ops.ResizeBilinear(*_flags(site, *fields), half_up=site.unsigned),
        1, 1, ("ResizeBilinearOptions", "AlignCorners", "HalfPixelCenters"),
    ),
    "RESIZE_NEAREST_NEIGHBOR": TfliteRow(
        lambda site, *fields: ops.ResizeNearestNeighbor(*_flags(site, *fields)),
        1, 1, ("ResizeNearestNeighborOptions", "AlignCorners", "HalfPixelCenters"),
    ),
    "SVDF": TfliteRow(
        lambda site, rank, code: ops.Svdf(rank, site.activation(code)),
        5, options=("SVDFOptions", "Rank", "FusedActivationFunction"), layer=True, states=(4,),
    ),
    "TRANSPOSE_CONV": TfliteRow(
        _transpose_conv, 3, 1, order=(2, 1, 3, 0), layer=True,
        options=("TransposeConvOptions", "StrideH", "StrideW", "Padding", "FusedActivationFunction"),
    ),
}  # fmt: skip
