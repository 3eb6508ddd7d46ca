"""Normalisations that compute mean and variance at run time, such as LayerNormalization."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import (
    Converter,
    add,
    binary,
    divide,
    multiply,
    reduced,
    subtract,
    unary,
)
from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, GraphError, Tensor, ops

# The least float32 that is not subnormal: many FPUs flush smaller ones to 0. A vector of zeros stays one.
_TINY = float(np.finfo(np.float32).tiny)


def _normalised(op: OpContext, x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """Return (x - mean) / sqrt(variance + epsilon) along the stored ``axes``."""
    return _moments(op, x, axes, epsilon)[0]


def _moments(op: OpContext, x: Tensor, axes: Sequence[int], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return (x - mean) / sqrt(variance + epsilon) along ``axes``, the mean, and the reciprocal of the root."""
    mean = reduced(op, ops.Mean, x, axes)
    centred = subtract(op, x, mean)
    # Of differences, not the mean of squares minus the square of the mean, which cancels in float32.
    variance = reduced(op, ops.Mean, multiply(op, centred, centred), axes)
    inverse = unary(op, ops.Rsqrt(), add(op, variance, epsilon))
    return multiply(op, centred, inverse), mean, inverse


def _instance_normalization(op: OpContext) -> tuple[Value, ...]:
    """Normalise each channel of each image, then scale and shift it."""
    value = op.value(0)
    # A matrix has no positions to average over.
    if value.rank < 3:
        raise GraphError(op.node.place, f"takes images, not {value.tensor}")
    order = channels_last(value.rank)
    source = op.builder.stored(value, order)
    made = _normalised(op, source, range(1, value.rank - 1), op.real_attribute("epsilon", 1e-5))
    scale, bias = _floats(op, 1, "scale", source.shape[-1:]), _floats(op, 2, "bias", source.shape[-1:])
    return (Value(add(op, multiply(op, made, scale), bias), order),)


def _floats(op: OpContext, index: int, what: str, shape: Sequence[int]) -> Tensor:
    """Return input ``index``, constant or computed, in ``shape``."""
    if op.has(index) and not op.is_constant(index):
        tensor = op.tensor(index)
        if tensor.elements != math.prod(shape):
            raise GraphError(op.node.place, f"the {what} {tensor} does not fit {list(shape)}")
        return op.builder.reshaped(tensor, shape)
    data = op.constant(index, what).astype(np.float32)
    if data.size != math.prod(shape):
        raise GraphError(op.node.place, f"the {what} {list(data.shape)} does not fit {list(shape)}")
    return op.weights(what, data.reshape(shape))


def _layer_normalization(op: OpContext) -> tuple[Value, ...]:
    """Normalise all dimensions from ``axis`` on together."""
    source = op.tensor(0)
    # ONNX's default is the last dimension; all of them from there on have one mean.
    first = op.axis(op.integer("axis", -1), len(source.shape))
    axes = range(first, len(source.shape))
    made, mean, inverse = _moments(op, source, axes, op.real_attribute("epsilon", 1e-5))
    return op.made(_scaled_and_shifted(op, made)), op.made(mean), op.made(inverse)


def _scaled_and_shifted(op: OpContext, tensor: Tensor) -> Tensor:
    for index, what, operator in ((1, "scale", ops.Mul()), (2, "bias", ops.Add())):
        if op.has(index):
            constant = op.is_constant(index)
            number = op.weights(what, op.constant(index, what)) if constant else op.tensor(index)
            tensor = binary(op, operator, tensor, number)
    return tensor


def _rms_normalization(op: OpContext) -> tuple[Value, ...]:
    """Divide by the root mean square of all dimensions from ``axis`` on."""
    source = op.tensor(0)
    axes = range(op.axis(op.integer("axis", -1), len(source.shape)), len(source.shape))
    square = reduced(op, ops.Mean, multiply(op, source, source), axes)
    inverse = unary(op, ops.Rsqrt(), add(op, square, op.real_attribute("epsilon", 1e-5)))
    return (op.made(_scaled_and_shifted(op, multiply(op, source, inverse))),)


def _group_normalization(op: OpContext) -> tuple[Value, ...]:
    """Normalise groups of channels, then scale and shift each channel (since version 21; before, each group)."""
    source, groups = op.tensor(0), op.integer("num_groups", 0)
    if len(source.shape) < 2 or groups < 1 or source.shape[1] % groups:
        raise GraphError(op.node.place, f"{groups} groups do not fit {source}")
    grouped = op.builder.reshaped(source, (source.shape[0], groups, source.elements // source.shape[0] // groups))
    made = _normalised(op, grouped, (2,), op.real_attribute("epsilon", 1e-5))
    if not all(map(op.is_constant, (1, 2))):
        return (op.made(_by_computed_groups(op, made, source, groups)),)
    channels = source.shape[1]
    op.check_room((2, channels), DType.FLOAT32.size)
    # Before version 21, scale and bias had one number for each group.
    scale, bias = (np.repeat(d, channels // d.size) if channels % d.size == 0 else d
                   for d in (op.constant(1, "scale").reshape(-1), op.constant(2, "bias").reshape(-1)))  # fmt: skip
    spread = (channels, *(1 for _ in source.shape[2:]))
    if scale.size != channels or bias.size != channels:
        raise GraphError(op.node.place, f"{scale.size} scales do not fit {source}")
    made = op.builder.reshaped(made, source.shape)
    made = multiply(op, made, op.weights("scale", scale.reshape(spread)))
    return (op.made(add(op, made, op.weights("bias", bias.reshape(spread)))),)


def _by_computed_groups(op: OpContext, made: Tensor, source: Tensor, groups: int) -> Tensor:
    """Scale and shift ``made``, of the elements of ``source``, by one computed number for each channel or group."""
    channels = source.shape[1]
    size = channels // groups
    tensor = op.builder.reshaped(made, (source.shape[0], groups, size, made.shape[2] // size))
    for index, what, operator in ((1, "scale", ops.Mul()), (2, "bias", ops.Add())):
        count = op.held(index).tensor.elements
        spread = (groups, 1, 1) if count == groups else (groups, size, 1)
        tensor = binary(op, operator, tensor, _floats(op, index, what, spread))
    return op.builder.reshaped(tensor, source.shape)


def _mean_variance_normalization(op: OpContext) -> tuple[Value, ...]:
    value = op.value(0)
    axes = op.axes(op.integers("axes") or (0, 2, 3), value.rank)
    stored = [value.stored(axis) for axis in axes]
    centred = subtract(op, value.tensor, reduced(op, ops.Mean, value.tensor, stored))
    variance = reduced(op, ops.Mean, multiply(op, centred, centred), stored)
    # ONNX's definition of this operator adds 1e-9 to the deviation, not to the variance.
    deviation = add(op, unary(op, ops.Sqrt(), variance), 1e-9)
    return (Value(divide(op, centred, deviation), value.order),)


def _lp_normalization(op: OpContext) -> tuple[Value, ...]:
    """Divide by the L1 or L2 norm along an axis; vectors of zeros stay unchanged."""
    value, p = op.value(0), op.integer("p", 2)
    axis = value.stored(op.axis(op.integer("axis", -1), value.rank))
    x = value.tensor
    if p not in {1, 2}:
        raise op.unsupported(f"p {p} is not supported", "use 1 or 2")
    parts = unary(op, ops.Abs(), x) if p == 1 else multiply(op, x, x)
    norm = reduced(op, ops.Sum, parts, (axis,))
    norm = norm if p == 1 else unary(op, ops.Sqrt(), norm)
    return (Value(divide(op, x, binary(op, ops.Maximum(), norm, op.number("tiny", _TINY))), value.order),)


OPERATORS: Mapping[str, Converter] = {
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance_normalization,
    "RMSNormalization": _rms_normalization,
}
