"""Scale, shift and clamp tensors, in integers if they are quantised."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Order, Value, channels_last
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, DType, Operator, Quantization, Tensor, ops, quantize_value

_WEIGHT = 127
"""The weight of every channel; its scale makes it the factor. The greatest one has the finest steps for the bias."""


_GREATEST_BIASES = {DType.INT8: 1 << 30, DType.INT16: 1 << 45}


def scaled(op: OpContext, factors: Array, offsets: Array, order: Order | None = None) -> Value | None:
    """Return input 0 times ``factors`` plus ``offsets``, both float64 with one number for each channel or one for all.

    Return ``None`` if the input is not quantised, the output is not quantised later, or the scales do not allow it.
    The last dimension in ``order`` (by default, channels last) is the channels.
    """
    held, target = op.held(0), op.held_target
    if held.quantization is None or target is None or not (np.isfinite(factors) & np.isfinite(offsets)).all():
        return None
    order = order or channels_last(held.rank)
    source = op.builder.stored(held, order)
    channels = source.shape[-1] if source.shape else 1
    factors, offsets = np.broadcast_to(factors, (channels,)), np.broadcast_to(offsets, (channels,))
    scales = np.abs(factors) / _WEIGHT
    # A factor of 0, or one that is too small for a float32 scale, becomes a weight of 0 with any valid scale.
    scales = np.where(scales > np.finfo(np.float32).tiny, scales, held.quantization.scale)
    weights = np.where(np.abs(factors) / _WEIGHT == scales, np.sign(factors) * _WEIGHT, 0).astype(np.int8)
    # In units of the products, as biases of layers are.
    bias = np.rint(offsets / (scales * held.quantization.scale))
    if not (np.abs(bias) < _GREATEST_BIASES[source.dtype]).all():
        return None
    wide = np.int64 if source.dtype is DType.INT16 else np.int32
    image = len(source.shape) == 4
    rows = source if image else op.builder.reshaped(source, (1, 1, math.prod(source.shape[:-1]), channels))
    tensors = [
        rows,
        op.weights(
            "factors",
            weights.reshape(1, 1, 1, -1),
            Quantization(tuple(map(float, scales)), (0,) * channels, 3 if channels > 1 else 0),
        ),
        op.weights("offsets", bias.astype(wide)),
    ]
    made = op.attempt(ops.DepthwiseConv2D(depth_multiplier=1), tensors, rows.shape, target)
    return None if made is None else op.real(op.builder.reshaped(made, source.shape), order)


_KNOWN_CLAMPS: Mapping[tuple[float, float], Operator] = {
    (0.0, math.inf): ops.Relu(), (0.0, 6.0): ops.Relu6(), (-1.0, 1.0): ops.ReluN1To1()
}  # fmt: skip
"""RELU, RELU6 and similar operators by their bounds."""


def clamped(op: OpContext, tensor: Tensor, low: float, high: float) -> Tensor:
    """Return ``tensor`` clamped, by RELU, RELU6 or a similar operator if it has these bounds."""
    if (low, high) in _KNOWN_CLAMPS:
        return op.unary(_KNOWN_CLAMPS[low, high], tensor)
    # Infinite bounds need no operator.
    if low > -math.inf:
        tensor = op.binary(ops.Maximum(), tensor, op.number("minimum", low))
    if high < math.inf:
        tensor = op.binary(ops.Minimum(), tensor, op.number("maximum", high))
    return tensor


def clamped_integers(op: OpContext, held: Value, low: float, high: float) -> Value:
    """Return the quantised value ``held``, clamped with its own scale."""
    return held.moved(_clamped_integers(op, held.tensor, op.required(held.quantization), low, high), held.order)


def _clamped_integers(op: OpContext, tensor: Tensor, held: Quantization, low: float, high: float) -> Tensor:
    limits = np.iinfo(tensor.dtype.numpy)
    least, greatest = (_stored_bound(bound, held, limits) for bound in (low, high))
    # A named clamp is fused into the layer before it, unless the type's range is the bound already.
    if (low, high) in _KNOWN_CLAMPS and (least > limits.min or greatest < limits.max):
        return op.emit(_KNOWN_CLAMPS[low, high], [tensor], tensor.shape, quantization=held)
    return limited(op, tensor, least if least > limits.min else None, greatest if greatest < limits.max else None)


def limited(op: OpContext, tensor: Tensor, least: int | None, greatest: int | None) -> Tensor:
    """Return the quantised ``tensor`` with its integers clamped."""
    held, dtype = tensor.quantization, tensor.dtype.numpy
    if (least, greatest) == (0, None) and held is not None and held.zero_points == (0,):  # fused into the layer before
        if op.builder.is_rectified(tensor):
            return tensor
        return op.emit(ops.Relu(), [tensor], tensor.shape, quantization=held)
    if least is not None:
        limit = op.weights("minimum", np.array(least, dtype), held)
        tensor = op.emit(ops.Maximum(), [tensor, limit], tensor.shape, quantization=held)
    if greatest is not None:
        limit = op.weights("maximum", np.array(greatest, dtype), held)
        tensor = op.emit(ops.Minimum(), [tensor, limit], tensor.shape, quantization=held)
    return tensor


def _stored_bound(bound: float, held: Quantization, limits: np.iinfo[Any]) -> int:
    """Return the integer that represents ``bound``, the nearest one if it is outside of ``limits``."""
    try:
        return max(limits.min, min(limits.max, quantize_value(bound, held.scale, held.zero_point)))
    # A bound beyond the range of the type has no effect: the end of the type stands for it.
    except OverflowError:  # infinite, or nearly so
        return limits.max if bound > 0 else limits.min
