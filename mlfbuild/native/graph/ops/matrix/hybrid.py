"""Layers of int8 weights over float32, from TensorFlow's dynamic range quantisation, in two steps.

QUANTIZE_ROWS quantises each row of the input, an image or a vector, to int8 with a scale that is computed in each run.
The layer adds products of integers and multiplies the sums by the scales. Both have the steps of LiteRT's reference
kernels in float32, in the same order, so that the next layer receives the same bits.

CONV_INTEGER writes only the sums, for an image with one computed zero point.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mlfbuild.library import round_half_away
from mlfbuild.native.graph.bases import rules, weighted
from mlfbuild.native.graph.bases.convolution import Convolution
from mlfbuild.native.graph.operator import Activation, Operator
from mlfbuild.native.graph.ops.convolution.conv2d import Conv2D
from mlfbuild.native.graph.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from mlfbuild.native.graph.ops.matrix.fully_connected import FullyConnected
from mlfbuild.native.graph.quantize import float_activation_range
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Operands, Tensor, Values

# Rounded numbers become integers, and a float32 beyond their range is undefined in C. A zero point moves a number by
# 128 at most, so any limit from 256 on gives the same int8.
_FAR = np.float32(512)
"""Numbers beyond it are also out of range after a zero point is added."""


class QuantizeRows(Operator):
    """Writes int8 numbers, the scale of each row and, if ``asymmetric``, its zero point as int32.

    The greatest magnitude of a row becomes 127; if ``asymmetric``, the range of its numbers and 0 becomes -128 to 127.
    """

    asymmetric: bool = False

    name = "QUANTIZE_ROWS"
    types = (DType.FLOAT32,)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        count = 3 if self.asymmetric else 2
        if len(inputs.present) != 1 or len(outputs) != count:
            return f"has {len(inputs)} inputs and {len(outputs)} outputs, takes 1 and writes {count}"
        source, (values, scales, *zero_points) = inputs[0], outputs
        return (
            rules.arithmetic(source, types=self.types)
            or rules.typed(values, DType.INT8)
            or rules.typed(scales, DType.FLOAT32)
            or rules.first(rules.typed(tensor, DType.INT32) for tensor in zero_points)
            or rules.shape(values, source.shape)
            or rules.rank(scales, 1)
            or rules.first(rules.shape(tensor, scales.shape) for tensor in zero_points)
            or (f"{source} cannot be cut into {scales.elements} rows" if source.elements % scales.elements else None)
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source = values[0]
        rows = source.reshape(outputs[1].elements, -1)
        with np.errstate(all="ignore"):
            stored, scales, zero_points = (self._with_offset if self.asymmetric else _symmetric)(rows)
        whole = stored.astype(np.int8).reshape(source.shape)
        return (whole, scales, zero_points.astype(np.int32)) if self.asymmetric else (whole, scales)

    def _with_offset(self, rows: Array) -> tuple[Array, Array, Array]:
        least, greatest = np.fmin.reduce(rows, axis=1, initial=0), np.fmax.reduce(rows, axis=1, initial=0)
        flat, step = least == greatest, (greatest - least).astype(np.float64) / 255
        below, above = least / step, greatest / step  # in double
        points = np.where(128 + np.abs(below) < 127 + np.abs(above), -128 - below, 127 - above)
        zero_points = np.where(flat, 0, np.clip(round_half_away(np.where(np.isnan(points), 0, points)), -128, 127))
        scales = np.where(flat, np.float32(1), step.astype(np.float32))
        stored = _rounded(rows * (np.float32(1) / scales)[:, np.newaxis]) + zero_points[:, np.newaxis]
        return np.clip(stored, -128, 127), scales, zero_points


def _symmetric(rows: Array) -> tuple[Array, Array, Array]:
    largest = np.fmax.reduce(np.abs(rows), axis=1, initial=0)
    zero = largest == 0
    scales = np.where(zero, np.float32(1), largest / np.float32(127))
    factors = np.where(zero, np.float32(0), np.float32(127) / largest)
    stored = np.clip(_rounded(rows * factors[:, np.newaxis]), -127, 127)
    return stored, scales, np.zeros(len(rows))


def _rounded(numbers: Array) -> Array:
    """Return float32 ``numbers`` rounded half away from zero; NaN is 0."""
    return round_half_away(np.clip(np.where(np.isnan(numbers), np.float32(0), numbers), -_FAR, _FAR))


class HybridTensors(NamedTuple):
    """The tensors of a hybrid layer."""

    values: Tensor
    scales: Tensor
    """The scale of each row of ``values``."""
    zero_points: Tensor | None
    weights: Tensor
    bias: Tensor | None
    output: Tensor


def hybrid_tensors(inputs: Inputs, outputs: Sequence[Tensor]) -> HybridTensors:
    """Return the named tensors of a checked node.

    For the arguments of ``Operator`` methods. ``zero_points`` and ``bias`` are ``None`` if the node does not have them;
    ``check`` has accepted the others.
    """
    return HybridTensors(inputs[0], inputs[1], inputs.optional(2), inputs[3], inputs.optional(4), outputs[0])


class Hybrid(Operator):
    """A layer over the outputs of QUANTIZE_ROWS; ``layer`` has the attributes of the float32 layer."""

    layer: FullyConnected | Convolution

    types = (DType.INT8,)
    results = (DType.FLOAT32,)

    @property
    def activation(self) -> Activation:
        """The fused activation."""
        return self.layer.activation

    @property
    def channel_axis(self) -> int:
        """The dimension of the weights for output channels."""
        return self.layer.channel_axis if isinstance(self.layer, Convolution) else 0

    def channel_first(self, weights: Tensor) -> bool:
        """Return whether a sum is first multiplied by the scale of its channel, not by the product of both scales."""
        return isinstance(self.layer, Conv2D) and len(set(weights.affine.scales)) > 1

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        if len(inputs) != 5 or len(outputs) != 1:
            return f"has {len(inputs)} inputs and {len(outputs)} outputs, takes 5 and writes 1"
        absent = next((at for at in (0, 1, 3) if inputs.optional(at) is None), None)
        if absent is not None:
            return f"input {absent} is absent"
        tensors = hybrid_tensors(inputs, outputs)
        return (
            rules.first(rules.typed(tensor, DType.INT8) for tensor in (tensors.values, tensors.weights))
            or rules.typed(tensors.output, DType.FLOAT32)
            or self._check_shapes(tensors)
            or self._check_scales(tensors)
            or self._check_sums(tensors)
        )

    def _check_shapes(self, tensors: HybridTensors) -> str | None:
        """Check the layer as one of float32."""
        weights = Tensor(tensors.weights.name, tensors.weights.shape, DType.FLOAT32, data=_stand_in(tensors.weights))
        source = Tensor(tensors.values.name, tensors.values.shape, DType.FLOAT32)
        return self.layer.check(Operands([source, weights, tensors.bias]), [tensors.output])

    def _check_scales(self, tensors: HybridTensors) -> str | None:
        weights, axis = tensors.weights, self.channel_axis
        given = () if weights.quantization is None else weights.quantization.scales
        if isinstance(self.layer, DepthwiseConv2D) and len(given) != weights.shape[axis]:
            return f"the weights {weights} need a scale for each channel"
        rows = self._rows(tensors)
        return rules.parameters(weights, tensors.bias, weights.shape[axis], axis, (DType.FLOAT32,)) or rules.first(
            rules.shape(tensor, (rows,)) for tensor in (tensors.scales, tensors.zero_points) if tensor is not None
        )

    def _rows(self, tensors: HybridTensors) -> int:
        """Return the number of images or vectors, each with its scale."""
        if isinstance(self.layer, FullyConnected):
            return tensors.values.elements // tensors.weights.shape[1]
        return tensors.values.shape[0]

    def _check_sums(self, tensors: HybridTensors) -> str | None:
        """Refuse sums that may exceed 32 bits, which no runtime defines."""
        others = tuple(axis for axis in range(tensors.weights.known.ndim) if axis != self.channel_axis)
        largest = int(np.abs(tensors.weights.known.astype(np.int64)).sum(axis=others).max()) * 255
        return f"sums over the weights {tensors.weights} may exceed 32 bits" if largest >= 1 << 31 else None

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        tensors = hybrid_tensors(inputs, outputs)
        return self.layer.macs(Operands([tensors.values, tensors.weights]), outputs)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        tensors, zero_points, bias = hybrid_tensors(inputs, outputs), values.optional(2), values.optional(4)
        stored, scales, weights = values[0], values[1], values[3]
        rows = len(scales)
        centred = stored.astype(np.float64).reshape(rows, -1)
        if zero_points is not None:
            centred = centred - zero_points[:, np.newaxis]
        sums = self._sums(tensors, centred.reshape(stored.shape), weights).reshape(rows, -1, self._channels(tensors))
        by_channel = np.array(tensors.weights.affine.scales, np.float32)
        by_row = scales.reshape(rows, 1, 1)
        with np.errstate(all="ignore"):
            numbers = sums.astype(np.float32)
            first = self.channel_first(tensors.weights)
            products = numbers * by_channel * by_row if first else numbers * (by_channel * by_row)
            result = products if bias is None else products + bias.reshape(-1)
            low, high = map(np.float32, float_activation_range(self.activation))
            clamped = np.clip(result, low, high)
        return (np.asarray(clamped, np.float32).reshape(tensors.output.shape),)

    def _channels(self, tensors: HybridTensors) -> int:
        return tensors.weights.shape[self.channel_axis]

    def _sums(self, tensors: HybridTensors, values: Array, weights: Array) -> Array:
        """Return the sums of products, which are exact in double."""
        if isinstance(self.layer, FullyConnected):
            return np.asarray(values.reshape(-1, weights.shape[1]) @ weights.astype(np.float64).T)
        return self.layer.sums(tensors.values, tensors.weights, tensors.output, values, weights.astype(np.float64))


class HybridFullyConnected(Hybrid):
    """FULLY_CONNECTED; every vector has its scale."""

    name = "HYBRID_FULLY_CONNECTED"


class HybridConv2D(Hybrid):
    """CONV_2D; every image has its scale."""

    name = "HYBRID_CONV_2D"


class HybridDepthwiseConv2D(Hybrid):
    """DEPTHWISE_CONV_2D; every image has its scale."""

    name = "HYBRID_DEPTHWISE_CONV_2D"


class BlockwiseFullyConnected(Operator):
    """FULLY_CONNECTED over QUANTIZE_ROWS with zero points; each block of the weights of an output has a scale.

    The inputs are those of a hybrid layer and the float32 scales [outputs, blocks]. LiteRT adds the blocks in float32.
    """

    name = "BLOCKWISE_FULLY_CONNECTED"
    types = (DType.INT8,)
    results = (DType.FLOAT32,)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        if len(inputs) != 6 or len(outputs) != 1:
            return f"has {len(inputs)} inputs and {len(outputs)} outputs, takes 6 and writes 1"
        absent = next((at for at in (0, 1, 2, 3, 5) if inputs.optional(at) is None), None)
        if absent is not None:
            return f"input {absent} is absent"
        (values, scales, zero_points, weights), bias, blocks = inputs[:4], inputs.optional(4), inputs[5]
        reason = (
            rules.rank(weights, 2)
            or rules.first(rules.typed(tensor, DType.INT8) for tensor in (values, weights))
            or rules.first(rules.typed(tensor, DType.FLOAT32) for tensor in (scales, blocks, *outputs))
            or rules.typed(zero_points, DType.INT32)
            or rules.first(None if each.constant else f"{each} is not constant" for each in (weights, blocks))
            or (rules.parameters(blocks, bias, weights.shape[0], 0) if bias is not None else None)
        )
        if reason is not None:
            return reason
        channels, depth = weights.shape
        if blocks.shape[:1] != (channels,) or len(blocks.shape) != 2 or depth % blocks.shape[1]:
            return f"the scales {blocks} do not fit the weights {weights}"
        rows = (values.elements // depth,)
        if values.elements % depth or outputs[0].elements != rows[0] * channels:
            return f"the weights {weights} do not fit {values} and {outputs[0]}"
        return rules.shape(scales, rows) or rules.shape(zero_points, rows)

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        return outputs[0].elements * inputs[3].shape[1]

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        (stored, scales, zero_points, weights), bias, blocks = values[:4], values.optional(4), values[5]
        count = blocks.shape[1]
        rows = stored.reshape(len(scales), count, -1).astype(np.float64)
        parts = weights.reshape(len(weights), count, -1).astype(np.float64)
        total = np.zeros((len(scales), len(weights)), np.float32)
        with np.errstate(all="ignore"):
            for at in range(count):
                total += (rows[:, at] @ parts[:, at].T).astype(np.float32) * blocks[:, at]
            shifts = zero_points[:, np.newaxis].astype(np.float32) * block_sums(weights, blocks)
            total = (total - shifts) * scales[:, np.newaxis]
            result = total if bias is None else total + bias.reshape(-1)
        return (result.astype(np.float32).reshape(outputs[0].shape),)


def block_sums(weights: Array, scales: Array) -> Array:
    """Return the sum of the real weights of each output, added block by block in float32.

    ``weights`` are int8 [outputs, inputs] and ``scales`` float32 [outputs, blocks]. The result is float32 [outputs];
    times the zero point of a row, it is what LiteRT subtracts.
    """
    sums = weights.reshape(*scales.shape, -1).sum(axis=2, dtype=np.int64).astype(np.float32)
    total = np.zeros(len(weights), np.float32)
    for at in range(scales.shape[1]):
        total += scales[:, at] * sums[:, at]
    return total


class ConvInteger(Operator):
    """Writes the sums of (pixel - zero point) * (weight - offset), which wrap at 32 bits; padding is the zero point.

    The image is int8 NHWC, and the zero point one int8 number, constant or computed. The weights are int8 in the layout
    of ``layer``, and the offsets int32, one for each output channel; without them, they are zeros. A depthwise layer
    has none.
    """

    layer: Conv2D | DepthwiseConv2D

    name = "CONV_INTEGER"
    types = (DType.INT8,)
    results = (DType.INT32,)

    @rules.takes(3, optional=1)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        if isinstance(self.layer, DepthwiseConv2D) and inputs.optional(3) is not None:
            return "a depthwise layer has no offsets"
        reason = weighted.check_integers(inputs, outputs)
        if reason is not None:
            return reason
        image, weights = inputs[0], inputs[2]
        float_operands = [_as_float(image), replace(_as_float(weights), data=_stand_in(weights))]
        return self.layer.check(Operands(float_operands), [_as_float(outputs[0])]) or self._check_size(weights)

    def _check_size(self, weights: Tensor) -> str | None:
        """Refuse a depthwise filter whose sums may exceed 32 bits."""
        size = weights.elements // weights.shape[3]
        wide = isinstance(self.layer, DepthwiseConv2D) and size * 255 * 128 >= 1 << 31
        return f"sums over the weights {weights} may exceed 32 bits" if wide else None

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        return self.layer.macs(Operands([inputs[0], inputs[2]]), outputs)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        (image, zero_point, weights), offsets = values[:3], values.optional(3)
        pixels, factors = image.astype(np.float64) - float(zero_point.reshape(())), weights.astype(np.float64)
        if offsets is not None:
            factors = factors - offsets.astype(np.float64).reshape(-1, 1, 1, 1)
        sums = self.layer.sums(inputs[0], inputs[2], outputs[0], pixels, factors)  # exact in double
        return (sums.astype(np.int64).astype(np.int32),)


def _as_float(tensor: Tensor) -> Tensor:
    return Tensor(tensor.name, tensor.shape, DType.FLOAT32)


def _stand_in(weights: Tensor) -> Array | None:
    """Return an array of the shape of constant ``weights`` that takes no memory."""
    return np.broadcast_to(np.float32(0), weights.shape) if weights.constant else None
