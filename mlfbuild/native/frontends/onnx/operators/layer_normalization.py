"""Normalisations that compute mean and variance at run time, such as LayerNormalization."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    add,
    binary,
    divide,
    multiply,
    reduced,
    subtract,
    unary,
)
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, GraphError, Tensor, ops

_TINY = float(np.finfo(np.float32).tiny)


def _normalised(site: OnnxSite, x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """Return (x - mean) / sqrt(variance + epsilon) along the stored ``axes``."""
    return _moments(site, x, axes, epsilon)[0]


def _moments(site: OnnxSite, x: Tensor, axes: Sequence[int], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return (x - mean) / sqrt(variance + epsilon) along ``axes``, the mean, and the reciprocal of the root."""
    mean = reduced(site, ops.Mean, x, axes)
    centred = subtract(site, x, mean)
    variance = reduced(site, ops.Mean, multiply(site, centred, centred), axes)
    inverse = unary(site, ops.Rsqrt(), add(site, variance, epsilon))
    return multiply(site, centred, inverse), mean, inverse


def _instance_normalization(site: OnnxSite) -> tuple[Value, ...]:
    """Normalise each channel of each image, then scale and shift it."""
    value = site.value(0)
    if value.rank < 3:
        raise GraphError(site.node.place, f"takes images, not {value.tensor}")
    order = channels_last(value.rank)
    source = site.builder.stored(value, order)
    made = _normalised(site, source, range(1, value.rank - 1), site.real_attribute("epsilon", 1e-5))
    scale, bias = _floats(site, 1, "scale", source.shape[-1:]), _floats(site, 2, "bias", source.shape[-1:])
    return (Value(add(site, multiply(site, made, scale), bias), order),)


def _floats(site: OnnxSite, index: int, what: str, shape: Sequence[int]) -> Tensor:
    """Return input ``index``, constant or computed, in ``shape``."""
    if site.has(index) and not site.is_constant(index):
        tensor = site.tensor(index)
        if tensor.elements != math.prod(shape):
            raise GraphError(site.node.place, f"the {what} {tensor} does not fit {list(shape)}")
        return site.builder.reshaped(tensor, shape)
    data = site.constant(index, what).astype(np.float32)
    if data.size != math.prod(shape):
        raise GraphError(site.node.place, f"the {what} {list(data.shape)} does not fit {list(shape)}")
    return site.weights(what, data.reshape(shape))


def _layer_normalization(site: OnnxSite) -> tuple[Value, ...]:
    """Normalise all dimensions from ``axis`` on together."""
    source = site.tensor(0)
    first = site.axis(site.integer("axis", -1), len(source.shape))
    axes = range(first, len(source.shape))
    made, mean, inverse = _moments(site, source, axes, site.real_attribute("epsilon", 1e-5))
    return site.made(_scaled_and_shifted(site, made)), site.made(mean), site.made(inverse)


def _scaled_and_shifted(site: OnnxSite, tensor: Tensor) -> Tensor:
    for index, what, operator in ((1, "scale", ops.Mul()), (2, "bias", ops.Add())):
        if site.has(index):
            constant = site.is_constant(index)
            number = site.weights(what, site.constant(index, what)) if constant else site.tensor(index)
            tensor = binary(site, operator, tensor, number)
    return tensor


def _rms_normalization(site: OnnxSite) -> tuple[Value, ...]:
    """Divide by the root mean square of all dimensions from ``axis`` on."""
    source = site.tensor(0)
    axes = range(site.axis(site.integer("axis", -1), len(source.shape)), len(source.shape))
    square = reduced(site, ops.Mean, multiply(site, source, source), axes)
    inverse = unary(site, ops.Rsqrt(), add(site, square, site.real_attribute("epsilon", 1e-5)))
    return (site.made(_scaled_and_shifted(site, multiply(site, source, inverse))),)


def _group_normalization(site: OnnxSite) -> tuple[Value, ...]:
    """Normalise groups of channels, then scale and shift each channel (since version 21; before, each group)."""
    source, groups = site.tensor(0), site.integer("num_groups", 0)
    if len(source.shape) < 2 or groups < 1 or source.shape[1] % groups:
        raise GraphError(site.node.place, f"{groups} groups do not fit {source}")
    grouped = site.builder.reshaped(source, (source.shape[0], groups, source.elements // source.shape[0] // groups))
    made = _normalised(site, grouped, (2,), site.real_attribute("epsilon", 1e-5))
    if not all(map(site.is_constant, (1, 2))):
        return (site.made(_by_computed_groups(site, made, source, groups)),)
    channels = source.shape[1]
    site.check_room((2, channels), DType.FLOAT32.size)
    scale, bias = (np.repeat(d, channels // d.size) if channels % d.size == 0 else d
                   for d in (site.constant(1, "scale").reshape(-1), site.constant(2, "bias").reshape(-1)))  # fmt: skip
    spread = (channels, *(1 for _ in source.shape[2:]))
    if scale.size != channels or bias.size != channels:
        raise GraphError(site.node.place, f"{scale.size} scales do not fit {source}")
    made = site.builder.reshaped(made, source.shape)
    made = multiply(site, made, site.weights("scale", scale.reshape(spread)))
    return (site.made(add(site, made, site.weights("bias", bias.reshape(spread)))),)


def _by_computed_groups(site: OnnxSite, made: Tensor, source: Tensor, groups: int) -> Tensor:
    """Scale and shift ``made``, of the elements of ``source``, by one computed number for each channel or group."""
    channels = source.shape[1]
    size = channels // groups
    tensor = site.builder.reshaped(made, (source.shape[0], groups, size, made.shape[2] // size))
    for index, what, operator in ((1, "scale", ops.Mul()), (2, "bias", ops.Add())):
        count = site.held(index).tensor.elements
        spread = (groups, 1, 1) if count == groups else (groups, size, 1)
        tensor = binary(site, operator, tensor, _floats(site, index, what, spread))
    return site.builder.reshaped(tensor, source.shape)


def _mean_variance_normalization(site: OnnxSite) -> tuple[Value, ...]:
    value = site.value(0)
    axes = site.axes(site.integers("axes") or (0, 2, 3), value.rank)
    stored = [value.stored(axis) for axis in axes]
    centred = subtract(site, value.tensor, reduced(site, ops.Mean, value.tensor, stored))
    variance = reduced(site, ops.Mean, multiply(site, centred, centred), stored)
    deviation = add(site, unary(site, ops.Sqrt(), variance), 1e-9)
    return (Value(divide(site, centred, deviation), value.order),)


def _lp_normalization(site: OnnxSite) -> tuple[Value, ...]:
    """Divide by the L1 or L2 norm along an axis; vectors of zeros stay unchanged."""
    value, p = site.value(0), site.integer("p", 2)
    axis = value.stored(site.axis(site.integer("axis", -1), value.rank))
    x = value.tensor
    if p not in {1, 2}:
        raise site.unsupported(f"p {p} is not supported", "use 1 or 2")
    parts = unary(site, ops.Abs(), x) if p == 1 else multiply(site, x, x)
    norm = reduced(site, ops.Sum, parts, (axis,))
    norm = norm if p == 1 else unary(site, ops.Sqrt(), norm)
    return (Value(divide(site, x, binary(site, ops.Maximum(), norm, site.number("tiny", _TINY))), value.order),)


OPERATORS: Mapping[str, Converter] = {
    "GroupNormalization": _group_normalization,
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance_normalization,
    "RMSNormalization": _rms_normalization,
}
