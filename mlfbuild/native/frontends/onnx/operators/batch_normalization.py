"""BatchNormalization: a factor and an offset for each channel.

In integers, they are a depthwise convolution with a filter of one pixel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Order, Value, channels_last
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, add, multiply, reduced, subtract, unary
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, DType, GraphError, Quantization, Tensor, ops

_WEIGHT = 127
"""The weight of every channel; its scale makes it the factor. The greatest one has the finest steps for the bias."""
_GREATEST_BIASES = {DType.INT8: 1 << 30, DType.INT16: 1 << 45}


def _batch_normalization(site: OnnxSite) -> tuple[Value, ...]:
    """Scale and shift every channel: y = (x - mean) / sqrt(variance + epsilon) * scale + bias."""
    if site.integer("training_mode", 0):
        return _trained(site)
    if any(site.node.outputs[1:]):
        raise site.unsupported("outputs of training are not supported", "export the network for inference")
    if not all(map(site.is_constant, range(1, 5))):
        return (_computed(site),)
    value = site.held(0)
    scale, bias, mean, variance = (
        site.constant(index, what).astype(np.float64)
        for index, what in enumerate(("scale", "bias", "mean", "variance"), start=1)
    )
    order = channels_last(value.rank)
    if value.rank < 2 or any(array.shape != value.shape[1:2] for array in (scale, bias, mean, variance)):
        raise GraphError(site.node.place, f"has {scale.size} scales for {value.tensor}")
    factor = scale / np.sqrt(variance + site.real_attribute("epsilon", 1e-5))
    offset = bias - mean * factor
    in_integers = scaled(site, factor, offset)
    if in_integers is not None:
        return (in_integers,)
    source = site.builder.stored(site.value(0), order)
    product = site.emit(ops.Mul(), [source, _floats(site, "scale", factor)], source.shape)
    shifted = site.emit(ops.Add(), [product, _floats(site, "offset", offset)], source.shape)
    return (Value(shifted, order),)


def _computed(site: OnnxSite) -> Value:
    """Normalise with parameters of which at least one is computed."""
    value = site.value(0)
    order = channels_last(value.rank)
    source = site.builder.stored(value, order)
    scale, bias, mean, variance = (site.tensor(index) for index in range(1, 5))
    for tensor in (scale, bias, mean, variance):
        if value.rank < 2 or tensor.shape != value.shape[1:2]:
            raise GraphError(site.node.place, f"{tensor} does not fit the channels of {value.tensor}")
    inverse = unary(site, ops.Rsqrt(), add(site, variance, site.real_attribute("epsilon", 1e-5)))
    factor = multiply(site, inverse, scale)
    return Value(add(site, multiply(site, subtract(site, source, mean), factor), bias), order)


def _trained(site: OnnxSite) -> tuple[Value, ...]:
    """Normalise with the mean and the variance of the input itself; return also the running ones."""
    value = site.value(0)
    order = channels_last(value.rank)
    source = site.builder.stored(value, order)
    scale, bias, *running = (site.tensor(index) for index in range(1, 5))
    for tensor in (scale, bias, *running):
        if value.rank < 2 or tensor.shape != value.shape[1:2]:
            raise GraphError(site.node.place, f"{tensor} does not fit the channels of {value.tensor}")
    axes = range(value.rank - 1)
    mean = reduced(site, ops.Mean, source, axes)
    centred = subtract(site, source, mean)
    variance = reduced(site, ops.Mean, multiply(site, centred, centred), axes)
    inverse = unary(site, ops.Rsqrt(), add(site, variance, site.real_attribute("epsilon", 1e-5)))
    made = add(site, multiply(site, multiply(site, centred, inverse), scale), bias)
    momentum = site.real_attribute("momentum", 0.9)
    averages = (
        add(site, multiply(site, old, momentum),
            multiply(site, site.builder.reshaped(new, old.shape), 1.0 - momentum))
        for old, new in zip(running, (mean, variance), strict=True)
    )  # fmt: skip
    return Value(made, order), *map(site.made, averages)


def _floats(site: OnnxSite, word: str, values: Array) -> Tensor:
    return site.weights(word, values.astype(np.float32))


def scaled(site: OnnxSite, factors: Array, offsets: Array, order: Order | None = None) -> Value | None:
    """Return input 0 times ``factors`` plus ``offsets``, both float64 with one number for each channel or one for all.

    Return ``None`` if the input is not quantised, the output is not quantised later, or the scales do not allow it.
    The last dimension in ``order`` (by default, channels last) is the channels.
    """
    held, target = site.held(0), site.held_target
    if held.quantization is None or target is None or not (np.isfinite(factors) & np.isfinite(offsets)).all():
        return None
    order = order or channels_last(held.rank)
    source = site.builder.stored(held, order)
    channels = source.shape[-1] if source.shape else 1
    factors, offsets = np.broadcast_to(factors, (channels,)), np.broadcast_to(offsets, (channels,))
    scales = np.abs(factors) / _WEIGHT
    scales = np.where(scales > np.finfo(np.float32).tiny, scales, held.quantization.scale)
    weights = np.where(np.abs(factors) / _WEIGHT == scales, np.sign(factors) * _WEIGHT, 0).astype(np.int8)
    bias = np.rint(offsets / (scales * held.quantization.scale))
    if not (np.abs(bias) < _GREATEST_BIASES[source.dtype]).all():
        return None
    wide = np.int64 if source.dtype is DType.INT16 else np.int32
    image = len(source.shape) == 4
    rows = source if image else site.builder.reshaped(source, (1, 1, math.prod(source.shape[:-1]), channels))
    tensors = [
        rows,
        site.weights(
            "factors",
            weights.reshape(1, 1, 1, -1),
            Quantization(tuple(map(float, scales)), (0,) * channels, 3 if channels > 1 else 0),
        ),
        site.weights("offsets", bias.astype(wide)),
    ]
    made = site.attempt(ops.DepthwiseConv2D(depth_multiplier=1), tensors, rows.shape, target)
    return None if made is None else site.real(site.builder.reshaped(made, source.shape), order)


OPERATORS: Mapping[str, Converter] = {
    "BatchNormalization": _batch_normalization,
}
