"""BatchNormalization: a factor and an offset for each channel.

In integers, they are a depthwise convolution with a filter of one pixel.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter, add, multiply, reduced, subtract, unary
from mlfbuild.native.frontends.onnx.conversion.rescaling import scaled
from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, GraphError, Tensor, ops


def _batch_normalization(op: OpContext) -> tuple[Value, ...]:
    """Scale and shift every channel: y = (x - mean) / sqrt(variance + epsilon) * scale + bias."""
    if op.integer("training_mode", 0):
        return _trained(op)
    if any(op.node.outputs[1:]):
        raise op.unsupported("outputs of training are not supported", "export the network for inference")
    if not all(map(op.is_constant, range(1, 5))):
        return (_computed(op),)
    value = op.held(0)
    scale, bias, mean, variance = (
        op.constant(index, what).astype(np.float64)
        for index, what in enumerate(("scale", "bias", "mean", "variance"), start=1)
    )
    order = channels_last(value.rank)
    if value.rank < 2 or any(array.shape != value.shape[1:2] for array in (scale, bias, mean, variance)):
        raise GraphError(op.node.place, f"has {scale.size} scales for {value.tensor}")
    factor = scale / np.sqrt(variance + op.real_attribute("epsilon", 1e-5))
    offset = bias - mean * factor
    in_integers = scaled(op, factor, offset)
    if in_integers is not None:
        return (in_integers,)
    source = op.builder.stored(op.value(0), order)
    product = op.emit(ops.Mul(), [source, _floats(op, "scale", factor)], source.shape)
    shifted = op.emit(ops.Add(), [product, _floats(op, "offset", offset)], source.shape)
    return (Value(shifted, order),)


def _computed(op: OpContext) -> Value:
    """Normalise with parameters of which at least one is computed."""
    value = op.value(0)
    order = channels_last(value.rank)
    source = op.builder.stored(value, order)
    scale, bias, mean, variance = (op.tensor(index) for index in range(1, 5))
    for tensor in (scale, bias, mean, variance):
        if value.rank < 2 or tensor.shape != value.shape[1:2]:
            raise GraphError(op.node.place, f"{tensor} does not fit the channels of {value.tensor}")
    inverse = unary(op, ops.Rsqrt(), add(op, variance, op.real_attribute("epsilon", 1e-5)))
    factor = multiply(op, inverse, scale)
    return Value(add(op, multiply(op, subtract(op, source, mean), factor), bias), order)


def _trained(op: OpContext) -> tuple[Value, ...]:
    """Normalise with the mean and the variance of the input itself; return also the running ones."""
    value = op.value(0)
    order = channels_last(value.rank)
    source = op.builder.stored(value, order)
    scale, bias, *running = (op.tensor(index) for index in range(1, 5))
    for tensor in (scale, bias, *running):
        if value.rank < 2 or tensor.shape != value.shape[1:2]:
            raise GraphError(op.node.place, f"{tensor} does not fit the channels of {value.tensor}")
    axes = range(value.rank - 1)
    mean = reduced(op, ops.Mean, source, axes)
    centred = subtract(op, source, mean)
    variance = reduced(op, ops.Mean, multiply(op, centred, centred), axes)
    inverse = unary(op, ops.Rsqrt(), add(op, variance, op.real_attribute("epsilon", 1e-5)))
    made = add(op, multiply(op, multiply(op, centred, inverse), scale), bias)
    momentum = op.real_attribute("momentum", 0.9)
    averages = (
        add(op, multiply(op, old, momentum),
            multiply(op, op.builder.reshaped(new, old.shape), 1.0 - momentum))
        for old, new in zip(running, (mean, variance), strict=True)
    )  # fmt: skip
    return Value(made, order), *map(op.made, averages)


def _floats(op: OpContext, word: str, values: Array) -> Tensor:
    return op.weights(word, values.astype(np.float32))


OPERATORS: Mapping[str, Converter] = {
    "BatchNormalization": _batch_normalization,
}
