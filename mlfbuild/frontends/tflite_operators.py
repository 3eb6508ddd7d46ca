"""Each supported operator of TFLite: how its options and constant inputs become an operator of the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tflite.ActivationFunctionType import ActivationFunctionType
from tflite.AddOptions import AddOptions
from tflite.BuiltinOperator import BuiltinOperator
from tflite.BuiltinOptions import BuiltinOptions
from tflite.Conv2DOptions import Conv2DOptions
from tflite.DepthwiseConv2DOptions import DepthwiseConv2DOptions
from tflite.FullyConnectedOptions import FullyConnectedOptions
from tflite.FullyConnectedOptionsWeightsFormat import FullyConnectedOptionsWeightsFormat
from tflite.Padding import Padding as PaddingMode
from tflite.Pool2DOptions import Pool2DOptions
from tflite.ReducerOptions import ReducerOptions
from tflite.SoftmaxOptions import SoftmaxOptions
from tflite.TensorType import TensorType

from mlfbuild.errors import UnsupportedModelError
from mlfbuild.frontends.tflite_reader import reading
from mlfbuild.graph import Activation, Array, DType, GraphError, Operator, Tensor, ops
from mlfbuild.graph.ops.window import Padding, Pair, resolve_padding

ACTIVATIONS = {
    ActivationFunctionType.NONE: Activation.NONE,
    ActivationFunctionType.RELU: Activation.RELU,
    ActivationFunctionType.RELU_N1_TO_1: Activation.RELU_N1_TO_1,
    ActivationFunctionType.RELU6: Activation.RELU6,
}


@dataclass(frozen=True)
class Site:
    """One operator of the file with its tensors, as the functions of ``OPERATORS`` see it."""

    place: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    options_type: int
    options: Any

    def input(self, index: int) -> Tensor:
        """Return input ``index``; raises ``GraphError`` where it is absent."""
        tensor = self.inputs[index] if index < len(self.inputs) else None
        if tensor is None:
            raise GraphError(self.place, f"input {index} is absent")
        return tensor

    def output(self) -> Tensor:
        """Return the first output; raises ``GraphError`` where there is none."""
        if not self.outputs:
            raise GraphError(self.place, "has no output")
        return self.outputs[0]

    def constant(self, index: int, what: str) -> Array:
        """Return the elements of the constant integer input ``index``; ``what`` names its meaning in messages."""
        tensor = self.input(index)
        if tensor.data is None:
            raise self.unsupported(f"the {what} {tensor} must be constant")
        if tensor.dtype not in {DType.INT32, DType.INT64}:
            raise GraphError(self.place, f"the {what} {tensor} must be int32 or int64")
        return tensor.data.reshape(-1)

    def read_options(self, kind: type[Any], tag: int) -> Any:
        """Return the options as the table ``kind``; raises ``GraphError`` where the file holds another one."""
        if self.options_type != tag or self.options is None:
            raise GraphError(self.place, f"its options are not {kind.__name__}")
        options = kind()
        with reading(self.place):
            options.Init(self.options.Bytes, self.options.Pos)
        return options

    def unsupported(self, reason: str) -> UnsupportedModelError:
        """Return the error for what is sound but not supported at this operator."""
        return UnsupportedModelError(f"{self.place}: {reason}")

    def activation(self, code: int) -> Activation:
        """Return the fused activation of TFLite's ``code``."""
        if code not in ACTIVATIONS:
            name = _name_of(ActivationFunctionType, code)
            supported = ", ".join(activation.name for activation in ACTIVATIONS.values())
            raise self.unsupported(f"fused activation {name} is not supported; supported are {supported}")
        return ACTIVATIONS[code]

    def padding(self, mode: int, filter_size: Pair, stride: Pair, dilation: Pair) -> Padding:
        """Return TFLite's SAME or VALID as explicit numbers for the NHWC image in input 0."""
        if mode not in {PaddingMode.SAME, PaddingMode.VALID}:
            raise GraphError(self.place, f"padding {mode} is neither SAME nor VALID")
        image = self.input(0)
        if len(image.shape) != 4:
            raise GraphError(self.place, f"{image} must have 4 dimensions")
        if min(*filter_size, *stride, *dilation) < 1:
            raise GraphError(self.place, f"filter {filter_size}, stride {stride}, dilation {dilation}: one is below 1")
        rows, columns = (
            resolve_padding(image.shape[1 + axis], filter_size[axis], stride[axis], dilation[axis],
                            same=mode == PaddingMode.SAME)
            for axis in (0, 1)
        )  # fmt: skip
        return rows, columns


def _name_of(enumeration: type[Any], code: int) -> str:
    """Return the name of ``code`` in a generated enumeration, or the number where it has none."""
    # Python 3.13 keeps a class's line number, an integer too, as __firstlineno__.
    names = (name for name, value in vars(enumeration).items() if value == code and not name.startswith("_"))
    return next(names, str(code))


def _conv2d(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options(Conv2DOptions, BuiltinOptions.Conv2DOptions)
        stride, dilation, padding = _window(site, options)
        activation = site.activation(options.FusedActivationFunction())
    image, weights = site.input(0), site.input(1)
    if image.shape[3] != weights.shape[3] and image.shape[3] % weights.shape[3] == 0:
        raise site.unsupported(f"grouped convolution ({weights} over {image}) is not supported")
    return ops.Conv2D(stride, dilation, padding, activation)


def _depthwise_conv2d(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options(DepthwiseConv2DOptions, BuiltinOptions.DepthwiseConv2DOptions)
        stride, dilation, padding = _window(site, options)
        activation = site.activation(options.FusedActivationFunction())
        # Some converters leave the multiplier out; the weights have it too.
        multiplier = options.DepthMultiplier() or site.input(1).shape[3] // site.input(0).shape[3]
        return ops.DepthwiseConv2D(stride, dilation, padding, activation, multiplier)


def _window(site: Site, options: Any) -> tuple[Pair, Pair, Padding]:
    """Return (stride, dilation, padding) of a convolution."""
    weights = site.input(1)
    if len(weights.shape) != 4:
        raise GraphError(site.place, f"the weights {weights} must have 4 dimensions")
    stride = (options.StrideH(), options.StrideW())
    dilation = (options.DilationHFactor(), options.DilationWFactor())
    filter_size = (weights.shape[1], weights.shape[2])
    return stride, dilation, site.padding(options.Padding(), filter_size, stride, dilation)


def _fully_connected(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options(FullyConnectedOptions, BuiltinOptions.FullyConnectedOptions)
        if options.WeightsFormat() != FullyConnectedOptionsWeightsFormat.DEFAULT:
            raise site.unsupported("shuffled weights are not supported")
        return ops.FullyConnected(site.activation(options.FusedActivationFunction()), bool(options.KeepNumDims()))


def _add(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options(AddOptions, BuiltinOptions.AddOptions)
        return ops.Add(site.activation(options.FusedActivationFunction()))


def _pool(kind: type[ops.AveragePool2D | ops.MaxPool2D]) -> Callable[[Site], Operator]:
    def read(site: Site) -> Operator:
        with reading(site.place):
            options = site.read_options(Pool2DOptions, BuiltinOptions.Pool2DOptions)
            filter_size = (options.FilterHeight(), options.FilterWidth())
            stride = (options.StrideH(), options.StrideW())
            padding = site.padding(options.Padding(), filter_size, stride, (1, 1))
            return kind(filter_size, stride, padding, site.activation(options.FusedActivationFunction()))

    return read


def _mean(site: Site) -> Operator:
    with reading(site.place):
        keep_dims = bool(site.read_options(ReducerOptions, BuiltinOptions.ReducerOptions).KeepDims())
    rank = len(site.input(0).shape)
    axes = [int(axis) for axis in site.constant(1, "axes")]
    for axis in axes:
        if not -rank <= axis < rank:
            raise GraphError(site.place, f"axis {axis} is not a dimension of {site.input(0)}")
    return ops.Mean(tuple(sorted({axis % rank for axis in axes})), keep_dims)


def _softmax(site: Site) -> Operator:
    with reading(site.place):
        return ops.Softmax(float(site.read_options(SoftmaxOptions, BuiltinOptions.SoftmaxOptions).Beta()))


def _reshape(site: Site) -> Operator:
    # The output's own shape is the truth; a shape that is computed at run time would make it a guess.
    if len(site.inputs) > 1 and site.inputs[1] is not None:
        site.constant(1, "new shape")
    return ops.Reshape()


def _pad(site: Site) -> Operator:
    paddings = site.constant(1, "paddings")
    if paddings.size != 2 * len(site.input(0).shape):
        raise GraphError(site.place, f"{paddings.size} paddings do not fit {site.input(0)}")
    return ops.Pad(tuple((int(before), int(after)) for before, after in paddings.reshape(-1, 2)))


@dataclass(frozen=True)
class OperatorKind:
    """How to read one operator: of its inputs the first ``values`` stay inputs, then come constant ``attributes``."""

    read: Callable[[Site], Operator]
    values: int
    attributes: int = 0


WITH_PARAMETERS = 3
"""The number of values of operators that read (input, weights, bias)."""

OPERATORS: Mapping[int, OperatorKind] = {
    BuiltinOperator.ADD: OperatorKind(_add, 2),
    BuiltinOperator.AVERAGE_POOL_2D: OperatorKind(_pool(ops.AveragePool2D), 1),
    BuiltinOperator.CONV_2D: OperatorKind(_conv2d, WITH_PARAMETERS),
    BuiltinOperator.DEPTHWISE_CONV_2D: OperatorKind(_depthwise_conv2d, WITH_PARAMETERS),
    BuiltinOperator.DEQUANTIZE: OperatorKind(lambda _: ops.Dequantize(), 1),
    BuiltinOperator.FULLY_CONNECTED: OperatorKind(_fully_connected, WITH_PARAMETERS),
    BuiltinOperator.MAX_POOL_2D: OperatorKind(_pool(ops.MaxPool2D), 1),
    BuiltinOperator.MEAN: OperatorKind(_mean, 1, 1),
    BuiltinOperator.PAD: OperatorKind(_pad, 1, 1),
    BuiltinOperator.QUANTIZE: OperatorKind(lambda _: ops.Quantize(), 1),
    BuiltinOperator.RESHAPE: OperatorKind(_reshape, 1, 1),
    BuiltinOperator.SOFTMAX: OperatorKind(_softmax, 1),
}


def operator_name(code: int) -> str:
    """Return TFLite's name of the operator ``code``, or the number where it has none."""
    name = _name_of(BuiltinOperator, code)
    return f"code {name}" if name.isdigit() else name


def type_name(code: int) -> str:
    """Return TFLite's name of the element type ``code``, or the number where it has none."""
    return _name_of(TensorType, code)
