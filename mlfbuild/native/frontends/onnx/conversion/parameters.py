"""Weights and biases of weighted sums, and products of matrices.

Parameters are float32, or integers if the whole sum is computed in integers. Both factors of a product may be computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Quantization, Tensor, ops

_INT8 = np.iinfo(np.int8)

_GREATEST_BIASES = {DType.INT32: 1 << 30, DType.INT64: 1 << 45}
"""Half of the range of sums at most, so that the sum of products has the other half."""


@dataclass(frozen=True, eq=False)
class LayerParameters:
    """Weights of any rank and a bias for each output channel."""

    weights: Array
    bias: Array | None
    scales: Array | None = None
    """The scales of integer weights, one, or one per output channel.

    Such weights are int16 without a zero point, from -255 to 255, and the bias is int32 or int64.
    """

    def channels(self, part: slice | Array) -> LayerParameters:
        """Return the parameters of some output channels, which are dimension 0 of the weights."""
        bias = None if self.bias is None else self.bias[part]
        # One scale belongs to every part, several are indexed like the channels.
        scales = self.scales if self.scales is None or self.scales.size == 1 else self.scales[part]
        return replace(self, weights=self.weights[part], bias=bias, scales=scales)

    def inputs(self, op: OpContext, source: Tensor, weights: Array) -> tuple[Tensor, Tensor, Tensor | None]:
        """Add these parameters to the graph; return the inputs of an operator that sums over channels of ``source``.

        In ``weights``, the output channels come first and the input channels last. If int8 cannot hold a weight without
        its zero point, the weight is the sum of several, and ``source`` has copies of its channel.
        """
        if self.scales is not None:
            source, weights = _split(op, source, weights)
        return source, *self._constants(op, weights, 0)

    def depthwise_inputs(self, op: OpContext, source: Tensor, weights: Array) -> tuple[Tensor, Tensor, Tensor | None]:
        """Add these parameters to the graph, with ``weights`` for one channel each, which are last."""
        stored = weights if self.scales is None else weights.astype(np.int8)
        return source, *self._constants(op, stored, weights.ndim - 1)

    def _constants(self, op: OpContext, weights: Array, axis: int) -> tuple[Tensor, Tensor | None]:
        quantization = None
        if self.scales is not None:
            # The axis matters only if there are several scales.
            quantization = Quantization(
                tuple(map(float, self.scales)), (0,) * self.scales.size, axis if self.scales.size > 1 else 0
            )
        bias = None if self.bias is None else op.weights("bias", self.bias)
        return op.weights("weights", weights, quantization), bias


def _split(op: OpContext, source: Tensor, weights: Array) -> tuple[Tensor, Array]:
    """Return ``weights`` as int8, and ``source`` with copies of the channels that have more than one weight each."""
    parts: list[Array] = []
    copies: list[Tensor] = []
    for part in int8_parts(weights):
        # All channels of the first part are kept, so that the first copy is the source itself.
        channels = _used(part, sum(copy.shape[-1] for copy in copies)) if parts else np.arange(part.shape[-1])
        parts.append(part[..., channels])
        copies.append(picked_channels(op, source, channels))
    if len(copies) == 1:
        return source, parts[0]
    shape = (*source.shape[:-1], sum(copy.shape[-1] for copy in copies))
    joined = op.emit(ops.Concatenation(len(shape) - 1), copies, shape, quantization=source.quantization)
    return joined, np.concatenate(parts, axis=-1)


def _used(part: Array, before: int) -> Array:
    """Return the input channels with weights other than 0, after ``before`` others.

    If possible, there are more of them, so that all are a multiple of what kernels load at once.
    """
    used = part.reshape(-1, part.shape[-1]).any(axis=0)
    count = int(used.sum())
    filled = count + -(before + count) % _LOADED
    # Stable, so that unused channels are added in their order, the same in every build.
    return np.sort(np.argsort(~used, kind="stable")[: filled if filled <= used.size else count])


_LOADED = 4
"""Weights that kernels of Cortex-M load at once; with other numbers of channels, they can take twice the time."""


def int8_parts(weights: Array) -> list[Array]:
    """Return int8 arrays whose sum is ``weights``, integers without a zero point.

    If there are several, they have no -128, with which kernels of the DSP extension cannot load weights in pairs.
    """
    if _INT8.min <= weights.min(initial=0) and weights.max(initial=0) <= _INT8.max:
        return [weights.astype(np.int8)]
    parts: list[Array] = []
    rest = weights
    while not parts or rest.any():
        # Without -128, see above; weights of 9 bits need two or three parts.
        part = np.clip(rest, -_INT8.max, _INT8.max)
        parts.append(part.astype(np.int8))
        rest = rest - part
    return parts


def picked_channels(op: OpContext, source: Tensor, channels: Array) -> Tensor:
    """Return some channels of ``source``, its last dimension, in the order of ``channels``.

    The order of ``channels`` may repeat or leave out channels. The result keeps the quantisation.
    """
    if np.array_equal(channels, np.arange(source.shape[-1])):
        return source
    indices = op.weights("channels", channels.astype(np.int32))
    shape = (*source.shape[:-1], len(channels))
    return op.emit(ops.Gather(len(shape) - 1), [source, indices], shape, quantization=source.quantization)


def real_parameters(op: OpContext) -> LayerParameters:
    """Return inputs 1 and 2 as float32."""
    return LayerParameters(op.constant(1, "filter"), op.constant(2, "bias").reshape(-1) if op.has(2) else None)


def integer_parameters(op: OpContext, axis: int) -> LayerParameters | None:
    """Return inputs 1 and 2 as integers, for the quantised input 0.

    Return ``None`` if the weights are not int8 or uint8 with one scale or one per index of ``axis``, or if the bias is
    too large for the sums.

    The bias becomes int32, or int64 for int16 activations, in the scale of the products.
    """
    held = op.held(0)
    source, activations = held.quantization, held.tensor.dtype
    weights = op.quantized(1)
    found = None if weights is None else weights.differences(axis)
    if found is None or source is None:
        # Weights of other types, or with scales along another axis, have no integer form.
        return None
    stored, scales = found
    if not op.has(2):
        return LayerParameters(stored, None, scales)
    shape, channels = op.constant_shape(2), stored.shape[axis] if axis < stored.ndim else 0
    if shape is None or math.prod(shape) not in {1, channels}:
        return None
    # The scale of a product is that of the input times that of the weights.
    bias = _integer_bias(op, np.float64(source.scale) * scales.astype(np.float64), activations)
    return None if bias is None else LayerParameters(stored, bias, scales)


def _integer_bias(op: OpContext, scales: Array, activations: DType) -> Array | None:
    """Return input 2 with ``scales``, those of the products, or unchanged if it has them already.

    It is int32, and int64 if ``activations`` are int16, whose sums of products do not fit into 32 bits.
    """
    known = op.quantized(2)
    if (
        known is not None
        and known.stored.dtype == np.int32
        and not known.affine.zero_points.any()
        and known.affine.scales.size in {1, scales.size}
        and np.allclose(known.affine.scales.astype(np.float64).reshape(-1), scales, rtol=1e-5, atol=0)
    ):
        stored = known.stored.reshape(-1).astype(np.float64)
    else:
        # In double, because a bias of 2**30 has more digits than float32.
        stored = np.rint(op.constant(2, "bias").reshape(-1).astype(np.float64) / scales)
    dtype = DType.INT64 if activations is DType.INT16 else DType.INT32
    return stored.astype(dtype.numpy) if (np.abs(stored) < _GREATEST_BIASES[dtype]).all() else None


def batch_product(op: OpContext, values: list[Value], target: Quantization | None) -> Tensor | None:
    """Return the product like numpy's ``matmul``: a vector is a row on the left side and a column on the right.

    The result has the broadcast batch dimensions. Raises ``GraphError`` if they do not broadcast.
    """
    first, second = (value.tensor for value in values)
    row, column = len(first.shape) == 1, len(second.shape) == 1
    if not first.shape or not second.shape:
        raise GraphError(op.node.place, "multiplies a number without dimensions")
    first = op.builder.reshaped(first, (1, *first.shape)) if row else first
    second = op.builder.reshaped(second, (*second.shape, 1)) if column else second
    try:
        batches = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    except ValueError:
        raise GraphError(op.node.place, f"{first} and {second} do not broadcast") from None
    shape = (*batches, first.shape[-2], second.shape[-1])
    if target is None:
        made: Tensor | None = op.emit(ops.BatchMatmul(), [first, second], shape)
    else:
        made = op.attempt(ops.BatchMatmul(), [first, second], shape, target)
    if made is None:
        return None
    # A vector on either side loses the dimension of 1 that was added for the product.
    kept = [*batches, *([] if row else shape[-2:-1]), *([] if column else shape[-1:])]
    return op.builder.reshaped(made, kept)


def fully_connected(op: OpContext, source: Tensor, weights: Array, bias: Array | None) -> Tensor:
    """Multiply the rows of ``source`` by float32 ``weights`` [outputs, inputs], and add ``bias``."""
    return weighted_rows(op, source, LayerParameters(weights, bias))


def weighted_rows(op: OpContext, source: Tensor, parameters: LayerParameters) -> Tensor:
    """Multiply the rows of ``source`` by weights [outputs, inputs]."""
    inputs = parameters.inputs(op, source, parameters.weights)
    return op.emit(_ROWS, inputs, (*source.shape[:-1], parameters.weights.shape[0]))


def integer_rows(op: OpContext, source: Tensor, parameters: LayerParameters, target: Quantization) -> Tensor | None:
    """Multiply in integers; ``None`` if the scales do not allow it."""
    inputs = parameters.inputs(op, source, parameters.weights)
    return op.attempt(_ROWS, inputs, (*source.shape[:-1], parameters.weights.shape[0]), target)


_ROWS = ops.FullyConnected(keep_num_dims=True)
