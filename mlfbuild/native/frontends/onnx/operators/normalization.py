"""Normalisations: with fixed factors (BatchNormalization), with the mean and variance of a run, and Softmax.

BatchNormalization is a factor and an offset for each channel; in integers, a depthwise convolution of one pixel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.rescaling import scaled
from mlfbuild.native.frontends.onnx.layout import Order, Value, as_onnx, channels_last
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import DType, GraphError, Quantization, Tensor, ops


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
    product = op.multiply(op.builder.stored(op.value(0), order), op.weights("scale", factor.astype(np.float32)))
    return (Value(op.add(product, op.weights("offset", offset.astype(np.float32))), order),)


def _computed(op: OpContext) -> Value:
    """Normalise with parameters of which at least one is computed."""
    source, order, (scale, bias, mean, variance) = _with_parameters(op)
    inverse = op.unary(ops.Rsqrt(), op.add(variance, op.real_attribute("epsilon", 1e-5)))
    factor = op.multiply(inverse, scale)
    return Value(op.add(op.multiply(op.subtract(source, mean), factor), bias), order)


def _with_parameters(op: OpContext) -> tuple[Tensor, Order, list[Tensor]]:
    """Return input 0 with channels last, its order, and the four other inputs, which have a number for each channel."""
    value = op.value(0)
    order = channels_last(value.rank)
    source = op.builder.stored(value, order)
    parameters = [op.tensor(index) for index in range(1, 5)]
    for tensor in parameters:
        if value.rank < 2 or tensor.shape != value.shape[1:2]:
            raise GraphError(op.node.place, f"{tensor} does not fit the channels of {value.tensor}")
    return source, order, parameters


def _trained(op: OpContext) -> tuple[Value, ...]:
    """Normalise with the mean and the variance of the input itself; return also the running ones."""
    source, order, (scale, bias, *running) = _with_parameters(op)
    axes = range(len(order) - 1)
    mean = op.reduced(ops.Mean, source, axes)
    centred = op.subtract(source, mean)
    variance = op.reduced(ops.Mean, op.multiply(centred, centred), axes)
    inverse = op.unary(ops.Rsqrt(), op.add(variance, op.real_attribute("epsilon", 1e-5)))
    made = op.add(op.multiply(op.multiply(centred, inverse), scale), bias)
    momentum = op.real_attribute("momentum", 0.9)
    averages = (
        op.add(op.multiply(old, momentum),
            op.multiply(op.builder.reshaped(new, old.shape), 1.0 - momentum))
        for old, new in zip(running, (mean, variance), strict=True)
    )  # fmt: skip
    return Value(made, order), *map(op.made, averages)


_SHARES = Quantization((1 / 256,), (-128,))
"""The quantisation of SOFTMAX's int8 output."""


def _softmax(op: OpContext) -> tuple[Value, ...]:
    held, target = op.held(0), op.held_target
    int8 = held.quantization is not None and held.tensor.dtype is DType.INT8
    if int8 and target is not None and target.scale >= _SHARES.scale:
        source, back = _rows(op, held)
        made = op.attempt(ops.Softmax(1.0), [source], source.shape, _SHARES)
        if made is not None:
            return (back(made),)
    return _along_rows(lambda op, rows: op.unary(ops.Softmax(1.0), rows))(op)


def _log_softmax(op: OpContext, rows: Tensor) -> Tensor:
    return op.subtract(rows, op.log_of_sum_of_exponentials(rows, (len(rows.shape) - 1,)))


def _along_rows(compute: Callable[[OpContext, Tensor], Tensor]) -> Callable[[OpContext], tuple[Value, ...]]:
    """Return a converter that applies ``compute`` to rows along the last dimension."""

    def convert(op: OpContext) -> tuple[Value, ...]:
        source, back = _rows(op, op.value(0))
        return (back(compute(op, source)),)

    return convert


def _hardmax(op: OpContext, rows: Tensor) -> Tensor:
    """Return 1 at the first greatest element of each row, 0 elsewhere."""
    if rows.dtype is not DType.FLOAT32:
        raise op.type_unsupported(rows, "float32")
    last = len(rows.shape) - 1
    op.check_room(rows.shape[-1:], DType.INT32.size)
    found = op.emit(ops.ArgMax(last), [rows], rows.shape[:-1], DType.INT32)
    column = op.builder.reshaped(found, (*rows.shape[:-1], 1))
    hit = op.relation(ops.Equal(), column, op.weights("places", np.arange(rows.shape[-1], dtype=np.int32)))
    return op.emit(ops.Cast(), [hit], rows.shape, DType.FLOAT32)


def _rows(op: OpContext, value: Value) -> tuple[Tensor, Callable[[Tensor], Value]]:
    """Return ``value`` with its rows along the last dimension, and a function that converts a result back.

    Before opset 13, all dimensions from ``axis`` on are one row.
    """
    if op.integer("opset", op.opset) >= 13:  # an attribute of QLinearSoftmax
        axis = op.axis(op.integer("axis", -1), value.rank)
        order = value.order if value.order[-1] == axis else _last(value.rank, axis)
        return op.builder.stored(value, order), lambda made: op.real(made, order)
    axis = op.axis(op.integer("axis", 1), value.rank)
    source = op.builder.stored(value, as_onnx(value.rank))
    rows = op.builder.reshaped(source, (math.prod(source.shape[:axis]), math.prod(source.shape[axis:])))
    return rows, lambda made: op.real(op.builder.reshaped(made, source.shape))


def _last(rank: int, axis: int) -> Order:
    return (*(other for other in as_onnx(rank) if other != axis), axis)


# The least float32 that is not subnormal: many FPUs flush smaller ones to 0. A vector of zeros stays one.
_TINY = float(np.finfo(np.float32).tiny)


def _normalised(op: OpContext, x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """Return (x - mean) / sqrt(variance + epsilon) along the stored ``axes``."""
    return _moments(op, x, axes, epsilon)[0]


def _moments(op: OpContext, x: Tensor, axes: Sequence[int], epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return (x - mean) / sqrt(variance + epsilon) along ``axes``, the mean, and the reciprocal of the root."""
    mean = op.reduced(ops.Mean, x, axes)
    centred = op.subtract(x, mean)
    # Of differences, not the mean of squares minus the square of the mean, which cancels in float32.
    variance = op.reduced(ops.Mean, op.multiply(centred, centred), axes)
    inverse = op.unary(ops.Rsqrt(), op.add(variance, epsilon))
    return op.multiply(centred, inverse), mean, inverse


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
    return (Value(op.add(op.multiply(made, scale), bias), order),)


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
            tensor = op.binary(operator, tensor, number)
    return tensor


def _rms_normalization(op: OpContext) -> tuple[Value, ...]:
    """Divide by the root mean square of all dimensions from ``axis`` on."""
    source = op.tensor(0)
    axes = range(op.axis(op.integer("axis", -1), len(source.shape)), len(source.shape))
    square = op.reduced(ops.Mean, op.multiply(source, source), axes)
    inverse = op.unary(ops.Rsqrt(), op.add(square, op.real_attribute("epsilon", 1e-5)))
    return (op.made(_scaled_and_shifted(op, op.multiply(source, inverse))),)


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
    made = op.multiply(made, op.weights("scale", scale.reshape(spread)))
    return (op.made(op.add(made, op.weights("bias", bias.reshape(spread)))),)


def _by_computed_groups(op: OpContext, made: Tensor, source: Tensor, groups: int) -> Tensor:
    """Scale and shift ``made``, of the elements of ``source``, by one computed number for each channel or group."""
    channels = source.shape[1]
    size = channels // groups
    tensor = op.builder.reshaped(made, (source.shape[0], groups, size, made.shape[2] // size))
    for index, what, operator in ((1, "scale", ops.Mul()), (2, "bias", ops.Add())):
        count = op.held(index).tensor.elements
        spread = (groups, 1, 1) if count == groups else (groups, size, 1)
        tensor = op.binary(operator, tensor, _floats(op, index, what, spread))
    return op.builder.reshaped(tensor, source.shape)


def _mean_variance_normalization(op: OpContext) -> tuple[Value, ...]:
    value = op.value(0)
    axes = op.axes(op.integers("axes") or (0, 2, 3), value.rank)
    stored = [value.stored(axis) for axis in axes]
    centred = op.subtract(value.tensor, op.reduced(ops.Mean, value.tensor, stored))
    variance = op.reduced(ops.Mean, op.multiply(centred, centred), stored)
    # ONNX's definition of this operator adds 1e-9 to the deviation, not to the variance.
    deviation = op.add(op.unary(ops.Sqrt(), variance), 1e-9)
    return (Value(op.divide(centred, deviation), value.order),)


def _lp_normalization(op: OpContext) -> tuple[Value, ...]:
    """Divide by the L1 or L2 norm along an axis; vectors of zeros stay unchanged."""
    value, p = op.value(0), op.integer("p", 2)
    axis = value.stored(op.axis(op.integer("axis", -1), value.rank))
    x = value.tensor
    if p not in {1, 2}:
        raise op.unsupported(f"p {p} is not supported", "use 1 or 2")
    parts = op.unary(ops.Abs(), x) if p == 1 else op.multiply(x, x)
    norm = op.reduced(ops.Sum, parts, (axis,))
    norm = norm if p == 1 else op.unary(ops.Sqrt(), norm)
    return (Value(op.divide(x, op.binary(ops.Maximum(), norm, op.number("tiny", _TINY))), value.order),)


OPERATORS: Mapping[str, Converter] = {
    "BatchNormalization": _batch_normalization,
    "GroupNormalization": _group_normalization,
    "Hardmax": _along_rows(_hardmax),
    "InstanceNormalization": _instance_normalization,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _along_rows(_log_softmax),
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance_normalization,
    "RMSNormalization": _rms_normalization,
    "Softmax": _softmax,
}
