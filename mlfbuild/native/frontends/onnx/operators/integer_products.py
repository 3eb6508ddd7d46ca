"""DynamicQuantizeLinear, MatMulInteger and ConvInteger, which onnxruntime's quantize_dynamic writes.

uint8 numbers are held as int8, lower by 128. A product with a constant matrix is computed in integers, and so is a
convolution with a constant filter, depthwise or of one group; others are computed in float32, if their sums are exact
there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion.convolution import convolved, convolved_by_computed, two_dimensional
from mlfbuild.native.frontends.onnx.conversion.image import from_image, image, sliding
from mlfbuild.native.frontends.onnx.conversion.parameters import LayerParameters, batch_product
from mlfbuild.native.frontends.onnx.layout import UNSIGNED_OFFSET, Value, as_onnx
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Quantization, Tensor, ops

_HELD = Quantization((1.0,), (-UNSIGNED_OFFSET,))
"""The quantisation of uint8 numbers whose scale is computed, held as int8: only the offset has a meaning."""


def _dynamically_quantized(op: OpContext) -> tuple[Value, ...]:
    """Return the numbers as uint8, their scale and their zero point."""
    value = op.value(0)
    if value.dtype is not DType.FLOAT32:
        raise op.type_unsupported(value.tensor, "float32")
    name = op.name
    stored = replace(checked(name, value.tensor.shape, DType.INT8), quantization=_HELD)
    zero = replace(checked(name, (), DType.INT8), quantization=_HELD)
    made, scale, zero_point = op.builder.emit(
        name, ops.DynamicQuantize(), [value.tensor], stored, checked(name, (), DType.FLOAT32), zero
    )
    return (
        Value(made, value.order, DType.UINT8), Value(scale, ()), Value(zero_point, (), DType.UINT8)
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Bytes:
    """Integers as int8, lower by ``offset``, and their zero point."""

    value: Value
    offset: int
    zero_point: Tensor
    """int8, lower by the offset as well."""


def _offset(value: Value) -> int:
    """Return by how much the tensor of ``value`` is lower."""
    return 0 if value.dtype is value.tensor.dtype else UNSIGNED_OFFSET


def _is_byte(value: Value) -> bool:
    return value.dtype in {DType.INT8, DType.UINT8}


def _bytes(op: OpContext) -> _Bytes | None:
    """Return input 0 with its zero point, input 2; ``None`` if there is one for each row."""
    value = op.held(0)
    if not _is_byte(value):
        raise op.type_unsupported(value.tensor, "int8 or uint8")
    offset = UNSIGNED_OFFSET if value.dtype is DType.UINT8 else 0
    if op.is_constant(2) or not op.has(2):
        # A zero point for each row would need another sum for each row.
        known = _known_zero_points(op, 2, value.dtype.numpy)
        if known.size != 1:
            return None
        number = np.array(int(known.reshape(-1)[0]) - offset, np.int8)
        return _Bytes(_lowered(op, value), offset, op.weights("zero point", number))
    zero_point = op.held(2)
    if zero_point.tensor.elements != 1 or zero_point.dtype is not value.dtype:
        return None
    return _Bytes(_lowered(op, value), offset, _lowered(op, zero_point).tensor)


def _lowered(op: OpContext, value: Value) -> Value:
    """Return 8-bit numbers as an int8 tensor; uint8 ones are lower by 128."""
    if value.tensor.dtype is DType.INT8:
        return value
    wide = op.cast(value.tensor, DType.INT32)
    lower = op.add(wide, op.weights("offset", np.array(-UNSIGNED_OFFSET, np.int32)))
    return Value(op.cast(lower, DType.INT8), value.order, DType.UINT8)


def _integer_product(op: OpContext) -> tuple[Value, ...]:
    """MatMulInteger: sums of products of 8-bit integers, as int32."""
    rows = _bytes(op) if op.is_constant(1) and op.constant(1, "matrix B").ndim == 2 else None
    if rows is None:
        return (_product_in_float32(op),)
    weights = op.constant(1, "matrix B")
    if rows.value.rank < 1 or rows.value.shape[-1] != weights.shape[0]:
        raise GraphError(op.node.place, f"{rows.value.tensor} does not fit a matrix {list(weights.shape)}")
    source = op.builder.stored(rows.value, as_onnx(rows.value.rank))
    return (op.made(_times_matrix(op, source, rows, weights.T)),)


def _times_matrix(op: OpContext, source: Tensor, rows: _Bytes, weights: Array) -> Tensor:
    """Multiply rows of ``source`` by constant ``weights`` [outputs, inputs], whose zero points are input 3."""
    stored, offsets = _stored(op, weights)
    inputs = [source, rows.zero_point, op.weights("weights", stored)]
    if offsets.any():
        inputs.append(op.weights("offsets", offsets))
    return op.emit(ops.MatmulInteger(), inputs, (*source.shape[:-1], weights.shape[0]), DType.INT32)


def _stored(op: OpContext, weights: Array) -> tuple[Array, Array]:
    """Return ``weights`` as int8, with an offset for each output channel, which are dimension 0.

    Their zero points are input 3. If int8 can hold the weights without them, the offsets are 0.
    """
    if weights.dtype not in (np.int8, np.uint8):
        raise op.unsupported(f"weights of {weights.dtype.name} are not supported", "use int8 or uint8")
    zero_points = _zero_points(op, weights.dtype, weights.shape[0]).astype(np.int32)
    stored = weights.astype(np.int32)
    # Without the zero point, most uint8 weights fit into int8 and need no offset.
    centred = stored - zero_points.reshape(-1, *(1 for _ in weights.shape[1:]))
    limits = np.iinfo(np.int8)
    if limits.min <= centred.min(initial=0) and centred.max(initial=0) <= limits.max:
        return centred.astype(np.int8), np.zeros_like(zero_points)
    offset = UNSIGNED_OFFSET if weights.dtype == np.uint8 else 0
    return (stored - offset).astype(np.int8), zero_points - offset


def _zero_points(op: OpContext, dtype: np.dtype[np.generic], count: int) -> Array:
    """Return the constant zero points of the weights, input 3: one for each of ``count`` output channels."""
    found = _known_zero_points(op, 3, dtype)
    if found.size not in {1, count}:
        raise GraphError(op.node.place, f"{found.size} zero points do not fit {count} output channels")
    return np.broadcast_to(found.reshape(-1), (count,))


def _known_zero_points(op: OpContext, index: int, dtype: np.dtype[Any]) -> Array:
    """Return the constant zero points at ``index``, 0 if they are absent, which have the type of the numbers."""
    if not op.has(index):
        return np.zeros((), dtype)
    found = op.constant(index, "zero point")
    if found.dtype != dtype:
        raise GraphError(op.node.place, f"zero points of {found.dtype.name} do not fit numbers of {dtype.name}")
    return found


_EXACT = 1 << 24
"""Sums of integers below it are exact in float32, in any order."""


def _check_exact(op: OpContext, greatest: float) -> None:
    if greatest >= _EXACT:
        raise op.unsupported(
            f"sums of up to {greatest:.0f}, beyond {_EXACT}, are not supported",
            "make the weights constant, or quantise the network statically",
        )


def _product_in_float32(op: OpContext) -> Value:
    """MatMulInteger of a computed matrix, or with zero points of rows."""
    values = [_centred(op, 0, 2, -2), _centred(op, 1, 3, -1)]
    # Two 8-bit numbers without zero points are at most 255 each.
    _check_exact(op, values[0].shape[-1] * 255.0 * 255.0 if values[0].rank else 0.0)
    made = op.required(batch_product(op, values, None))
    return op.made(op.cast(made, DType.INT32))


def _centred(op: OpContext, index: int, zero_point: int, axis: int) -> Value:
    """Return input ``index`` in ONNX's order without its zero points, one or one per index of ``axis``, as float32."""
    value = op.held_in_order(index)
    if not _is_byte(value):
        raise op.type_unsupported(value.tensor, "int8 or uint8")
    real = op.cast(value.tensor, DType.FLOAT32)
    zero = _real_zero_point(op, zero_point, value)
    # A zero point of 0 saves the subtraction.
    if zero is None:
        return op.made(real)
    if zero.elements > 1 and len(zero.shape) == 1:
        zero = op.builder.reshaped(zero, [zero.elements if at == axis else 1 for at in range(axis, 0)])
    return op.made(op.subtract(real, zero))


def _real_zero_point(op: OpContext, index: int, value: Value) -> Tensor | None:
    """Return the zero points of ``value`` as float32, lower by 128 if its numbers are; ``None`` if they are 0."""
    less = _offset(value)
    if op.is_constant(index) or not op.has(index):
        known = _known_zero_points(op, index, value.dtype.numpy).astype(np.float32) - np.float32(less)
        return op.weights("zero point", known) if known.any() else None
    given = op.held_in_order(index)
    if given.dtype is not value.dtype:
        raise GraphError(op.node.place, f"zero points of {given.dtype.value} do not fit {value.dtype.value}")
    real, difference = op.cast(given.tensor, DType.FLOAT32), less - _offset(given)
    return op.subtract(real, difference) if difference else real


def _integer_convolution(op: OpContext) -> tuple[Value, ...]:
    """ConvInteger: sums of products of 8-bit integers, as int32."""
    shape = op.constant_shape(1)
    if shape is not None and (len(shape) < 3 or 0 in shape):
        raise GraphError(op.node.place, f"the filter has the shape {list(shape)}")
    made = _in_integers(op)
    if made is None:
        real = _in_float32(op)
        made = Value(op.cast(real.tensor, DType.INT32), real.order)
    return (made,)


def _in_integers(op: OpContext) -> Value | None:
    """Return a convolution of images with a constant filter, depthwise or of one group; ``None`` for any other."""
    if not op.is_constant(1):
        return None
    weights, rows, groups = op.constant(1, "filter"), _bytes(op), op.integer("group", 1)
    if rows is None or rows.value.rank != weights.ndim or weights.ndim > 4:
        return None
    channels = rows.value.shape[1]
    # Other groups would need a convolution for each group; float32 has one that can do that.
    depthwise = groups == channels > 1 and weights.shape[1] == 1 and weights.shape[0] % groups == 0
    if not depthwise and (groups != 1 or weights.shape[1] != channels):
        return None
    stored, offsets = _stored(op, weights)
    source, filters = image(op, rows.value), two_dimensional(op, rows.value, stored)
    window = sliding(op, (source.shape[1], source.shape[2]), filters.shape[2:])
    # The kernel has neither padding wider than the filter nor offsets for depthwise filters.
    if any(max(window.padding[axis]) >= window.reach[axis] for axis in (0, 1)) or (depthwise and offsets.any()):
        return None
    options = window.stride, window.dilation, window.padding
    layer: ops.Conv2D | ops.DepthwiseConv2D = ops.Conv2D(*options)
    order = (0, 2, 3, 1)
    if depthwise:
        layer, order = ops.DepthwiseConv2D(*options, depth_multiplier=weights.shape[0] // groups), (1, 2, 3, 0)
    inputs = [source, rows.zero_point, op.weights("weights", np.transpose(filters, order))]
    if offsets.any():
        inputs.append(op.weights("offsets", offsets))
    shape = (source.shape[0], *window.output, weights.shape[0])
    made = op.emit(ops.ConvInteger(layer), inputs, shape, DType.INT32)
    return replace(from_image(op, rows.value, made), declared=None)


def _in_float32(op: OpContext) -> Value:
    value = op.held(0)
    if not _is_byte(value):
        raise op.type_unsupported(value.tensor, "int8 or uint8")
    real = op.cast(value.tensor, DType.FLOAT32)
    zero = _real_zero_point(op, 2, value)
    if zero is not None and zero.elements != 1:
        raise op.unsupported(f"{zero.elements} zero points of input 0 are not supported", "use one")
    source = Value(real if zero is None else op.subtract(real, op.builder.reshaped(zero, ())), value.order)
    if not op.is_constant(1):
        weights = op.held_in_order(1)
        # float32 has exact integers up to 2**24 only. Weights that are computed may have any values.
        _check_exact(op, math.prod(weights.shape[1:]) * 255.0 * 255.0)
        return convolved_by_computed(op, source, _centred(op, 1, 3, -weights.rank), biased=False)
    filters = op.constant(1, "filter")
    spread = (-1, *(1 for _ in filters.shape[1:]))
    centred = filters.astype(np.float32) - _zero_points(op, filters.dtype, filters.shape[0]).reshape(spread)
    _check_exact(op, 255.0 * float(np.abs(centred).reshape(len(centred), -1).sum(axis=1).max()))
    return op.required(convolved(op, source, LayerParameters(centred.astype(np.float32), None), None))


OPERATORS: Mapping[str, Converter] = {
    "ConvInteger": _integer_convolution,
    "DynamicQuantizeLinear": _dynamically_quantized,
    "MatMulInteger": _integer_product,
}
