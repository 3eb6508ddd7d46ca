"""Trained network -> model for a .tflite file, in float32 or int8.

The int8 arithmetic is TFLite's (Jacob et al., 2018): real = scale * (q - zero_point). Weights are symmetric, with one
scale per output channel for convolutions and one per tensor for fully connected layers; activations are asymmetric,
with ranges measured on training data; biases are int32 in steps of input scale * weight scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import tflite

from mlfbuild.datasets import FileOperator as Operator, FileTensor as Tensor, NetworkFile as Model
from training.layers import Array, Conv, Dense, DepthwiseConv, Layer, MaxPool, Svdf
from training.network import Network

_RELU = {True: tflite.ActivationFunctionType.RELU, False: tflite.ActivationFunctionType.NONE}
_STRIDE = {"StrideH": 1, "StrideW": 1, "Padding": tflite.Padding.SAME}
_DILATION = {"DilationHFactor": 1, "DilationWFactor": 1}


@dataclass(frozen=True)
class Range:
    """The int8 quantisation of an activation."""

    scale: float
    zero_point: int

    @classmethod
    def of(cls, low: float, high: float) -> Range:
        """Return the finest steps that cover ``low`` to ``high`` and represent 0 exactly."""
        low, high = min(low, 0.0), max(high, 0.0)
        scale = float(np.float32((high - low) / 255))
        return cls(scale, int(np.clip(round(-128 - low / scale), -128, 127)))

    @classmethod
    def symmetric(cls, largest: float, bits: int) -> Range:
        """Return steps from ``-largest`` to ``largest`` for integers of ``bits``, with the zero point 0."""
        return cls(float(np.float32(max(largest, 1e-6) / ((1 << (bits - 1)) - 1))), 0)

    def quantize(self, values: Array) -> npt.NDArray[np.int8]:
        """Return the nearest int8 of each value, saturating."""
        return np.clip(np.rint(values / self.scale) + self.zero_point, -128, 127).astype(np.int8)


SOFTMAX_RANGE = Range(1 / 256, -128)
"""The output quantisation that TFLite prescribes for an int8 softmax."""

Activation = Callable[[str, tuple[int, ...], "Range | None"], Tensor]
Weights = Callable[[Layer, str], tuple[Tensor, ...]]
"""The tensors of a layer after its input, whose name is given."""
_TIME_BITS = 10
"""Of an SVDF's weights over time: products with a state of int16 leave room for the sum of 64 of them in int32."""


def float_model(network: Network, inputs: Array, *, description: str, names: tuple[str, str]) -> Model:
    """Return ``network`` with softmax in float32.

    ``inputs`` [N, ...] give the shape; ``names`` are those of the model's input and output.
    """

    def weights(layer: Layer, _: str) -> tuple[Tensor, ...]:
        value, bias = layer.parameters
        return (
            Tensor(f"{layer.name}/weights", "float32", value.shape, value),
            Tensor(f"{layer.name}/bias", "float32", bias.shape, bias),
        )

    def activation(name: str, shape: tuple[int, ...], _: Range | None) -> Tensor:
        return Tensor(name, "float32", shape)

    return _model(network, inputs, (description, *names), activation, weights, {})


def int8_model(
    network: Network, inputs: Array, input_range: Range, *, description: str, names: tuple[str, str]
) -> Model:
    """Return ``network`` with softmax in int8, the ranges inside it calibrated on ``inputs`` [N, ...]."""
    ranges = {names[0]: input_range}
    values, previous = inputs, names[0]
    for layer in network.layers:
        values = layer.forward(values)
        pooled = isinstance(layer, MaxPool)  # a maximum equals one of its inputs, so the steps do not change
        ranges[layer.name] = ranges[previous] if pooled else Range.of(float(values.min()), float(values.max()))
        if isinstance(layer, Svdf):
            ranges[f"{layer.name}/state"] = Range.symmetric(float(np.abs(layer.features).max()), 16)
        previous = layer.name
    ranges[names[1]] = SOFTMAX_RANGE

    def activation(name: str, shape: tuple[int, ...], steps: Range | None) -> Tensor:
        assert steps is not None
        return Tensor(name, "int8", shape, None, (steps.scale,), steps.zero_point)

    def weights(layer: Layer, source: str) -> tuple[Tensor, ...]:
        if isinstance(layer, Svdf):
            return _svdf_weights(layer, ranges[f"{layer.name}/state"])
        return _int8_weights(layer, ranges[source])

    return _model(network, inputs, (description, *names), activation, weights, ranges)


def _svdf_weights(layer: Svdf, state: Range) -> tuple[Tensor, ...]:
    """Quantise an SVDF's weights to int8 (features) and int16 (time); the last tensor is its state."""
    feature, time, bias = layer.parameters
    by_feature = Range.symmetric(np.abs(feature).max(), 8).scale
    by_time = Range.symmetric(np.abs(time).max(), _TIME_BITS).scale
    by_sum = float(np.float32(state.scale) * np.float32(by_time))

    def rounded(name: str, dtype: str, values: Array, scale: float) -> Tensor:
        return Tensor(f"{layer.name}/{name}", dtype, values.shape, np.rint(values / scale).astype(dtype), (scale,))

    return (
        rounded("weights", "int8", feature, by_feature),
        rounded("time", "int16", time, by_time),
        rounded("bias", "int32", bias, by_sum),
        Tensor(f"{layer.name}/state", "int16", (1, time.size), None, (state.scale,), variable=True),
    )


def _int8_weights(layer: Layer, inputs: Range) -> tuple[Tensor, ...]:
    """Quantise a layer's weights and bias; ``inputs`` are the steps of its input."""
    value, bias = layer.parameters
    axis = {Conv: 0, DepthwiseConv: 3}.get(type(layer))
    others = None if axis is None else tuple(each for each in range(value.ndim) if each != axis)
    largest = np.abs(value).max(axis=others, keepdims=True)
    scale = (np.maximum(largest, 1e-6) / 127).astype(np.float32)
    rounded = np.clip(np.rint(value / scale), -127, 127).astype(np.int8)
    scales = tuple(float(each) for each in scale.ravel())
    bias_scales = tuple(float(np.float32(inputs.scale) * np.float32(each)) for each in scales)
    bias_rounded = np.rint(bias.astype(np.float64) / np.array(bias_scales)).astype(np.int32)
    return (
        Tensor(f"{layer.name}/weights", "int8", value.shape, rounded, scales, 0, axis or 0),
        Tensor(f"{layer.name}/bias", "int32", bias.shape, bias_rounded, bias_scales),
    )


def _model(
    network: Network,
    inputs: Array,
    words: tuple[str, str, str],
    activation: Activation,
    weights: Weights,
    ranges: dict[str, Range],
) -> Model:
    """Walk the layers and collect tensors and operators; a model's activations are for one case at a time."""
    description, current, output = words
    values = inputs[:1]
    input_name = current
    tensors = [activation(current, values.shape, ranges.get(current))]
    operators = []
    for layer in network.layers:
        values = layer.forward(values)
        arguments: tuple[str, ...] = (current,)
        if layer.parameters:
            constants = weights(layer, current)
            tensors += constants
            arguments += tuple(tensor.name for tensor in constants)
        tensors.append(activation(layer.name, values.shape, ranges.get(layer.name)))
        operators.append(_operator(layer, arguments))
        current = layer.name
    tensors.append(activation(output, values.shape, ranges.get(output)))
    operators.append(Operator("SOFTMAX", (current,), (output,), "SoftmaxOptions", {"Beta": 1.0}))
    return Model(description, tuple(tensors), tuple(operators), input_name, output)


def _operator(layer: Layer, arguments: tuple[str, ...]) -> Operator:
    """Return a layer as TFLite's operator."""
    if isinstance(layer, Conv):
        options = {**_STRIDE, **_DILATION, "FusedActivationFunction": _RELU[True]}
        return Operator("CONV_2D", arguments, (layer.name,), "Conv2DOptions", options)
    if isinstance(layer, DepthwiseConv):
        options = {**_STRIDE, **_DILATION, "DepthMultiplier": 1, "FusedActivationFunction": _RELU[True]}
        return Operator("DEPTHWISE_CONV_2D", arguments, (layer.name,), "DepthwiseConv2DOptions", options)
    if isinstance(layer, MaxPool):
        options = {"Padding": tflite.Padding.VALID, "StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2}
        return Operator("MAX_POOL_2D", arguments, (layer.name,), "Pool2DOptions", options)
    if isinstance(layer, Dense):
        options = {"FusedActivationFunction": _RELU[layer.relu]}
        return Operator("FULLY_CONNECTED", arguments, (layer.name,), "FullyConnectedOptions", options)
    if isinstance(layer, Svdf):
        options = {"Rank": 1, "FusedActivationFunction": _RELU[True]}
        return Operator("SVDF", arguments, (layer.name,), "SVDFOptions", options)
    raise TypeError(f"{layer.name}: no TFLite operator for a {type(layer).__name__}")
