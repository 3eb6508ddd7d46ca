"""Layers: operators whose weights are constant, and those that move a window over an image.

Of UNIDIRECTIONAL_SEQUENCE_LSTM, only the plain form is supported, which uses a part of its 24 inputs.
"""

from __future__ import annotations

from collections.abc import Mapping

from tflite.ActivationFunctionType import ActivationFunctionType
from tflite.FullyConnectedOptionsWeightsFormat import FullyConnectedOptionsWeightsFormat
from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite.operators.site import TfliteRow, TfliteSite, name_of
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


_ROW = (0,)
_WEIGHTS = (1, 2, 3, 4)
_RECURRENT = (5, 6, 7, 8)
_PEEPHOLE = (9, 10, 11)
_BIASES = (12, 13, 14, 15)
_PROJECTION = (16, 17)
_STATES = (18, 19)
_NORMALISATION = (20, 21, 22, 23)

_VALUES = (*_ROW, *_WEIGHTS, *_RECURRENT, *_BIASES, *_STATES)
_VARIANTS = {"peephole weights": _PEEPHOLE, "a projection": _PROJECTION, "layer normalisation": _NORMALISATION}
_ORDER = (*_VALUES, *_PEEPHOLE, *_PROJECTION, *_NORMALISATION)
"""Positions of inputs in the file: first those of the plain form, then those of its variants."""


def _lstm(site: TfliteSite) -> Operator:
    _check_variant(site)
    activation, clip, time_major, diagonal = site.fields(
        "UnidirectionalSequenceLSTMOptions",
        "FusedActivationFunction", "CellClip", "TimeMajor", "DiagonalRecurrentTensors",
    )  # fmt: skip
    if activation != ActivationFunctionType.TANH:
        name = name_of(ActivationFunctionType, activation)
        raise site.unsupported(f"activation {name} of the cell is not supported", "use TANH")
    if diagonal:
        raise site.unsupported("diagonal recurrent weights are not supported", "store them as a matrix")
    return ops.UnidirectionalSequenceLstm(bool(time_major), float(clip))


def _check_variant(site: TfliteSite) -> None:
    """Refuse inputs and options that the plain form does not have, and a plain form whose inputs are absent."""
    inputs = dict(zip(_ORDER, site.inputs, strict=True))
    for variant, positions in _VARIANTS.items():
        found = next((inputs[at] for at in positions if inputs[at] is not None), None)
        if found is not None:
            raise site.unsupported(
                f"a layer with {variant} ({found}) is not supported", "use a plain LSTM layer such as that of Keras"
            )
    absent = [at for at in _VALUES if inputs[at] is None]
    # TFLite marks a coupled gate (CIFG) by leaving out the parameters of the input gate.
    if absent and {*absent} <= {_WEIGHTS[0], _RECURRENT[0], _BIASES[0]}:
        raise site.unsupported(
            f"coupled input and forget gates (input {absent[0]} is absent) are not supported",
            "use a plain LSTM layer such as that of Keras",
        )
    if absent:
        raise site.wrong(f"input {absent[0]} is absent")


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
    "UNIDIRECTIONAL_SEQUENCE_LSTM": TfliteRow(
        _lstm, len(_VALUES), len(_ORDER) - len(_VALUES),
        order=_ORDER, layer=True, states=(len(_VALUES) - 2, len(_VALUES) - 1),
    ),
}  # fmt: skip
