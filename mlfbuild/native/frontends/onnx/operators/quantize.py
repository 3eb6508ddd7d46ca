"""DequantizeLinear and QuantizeLinear, with constant or computed scales, and Cast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from mlfbuild.native.frontends.onnx.affine import Affine, check_scales
from mlfbuild.native.frontends.onnx.builder import element_type
from mlfbuild.native.frontends.onnx.conversion.rescaling import clamped, limited
from mlfbuild.native.frontends.onnx.conversion.selection import taken
from mlfbuild.native.frontends.onnx.layout import Value, as_onnx
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.frontends.onnx.raw_graph import ELEMENT_TYPES
from mlfbuild.native.frontends.onnx.targets import affine_of
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops


def _dequantize(op: OpContext) -> tuple[Value, ...]:
    """Record the scale and zero point of the tensor; compute real numbers only if it cannot hold them."""
    value = op.held(0)
    if not _is_constant(op):
        real = op.cast(op.tensor(0), DType.FLOAT32)
        if op.has(2):
            real = op.subtract(real, _spread(op, 2, real))
        return (op.made(op.multiply(real, _spread(op, 1, real))),)
    if op.integer("block_size", 0):
        return (_computed_by_blocks(op),)
    affine = _affine(op, value.dtype.numpy)
    held = affine.held()
    # No operator is necessary if the tensor has this scale and zero point already.
    if held is not None and value.tensor.quantization == held and value.dtype is affine.declared:
        return (Value(value.tensor, value.order, DType.FLOAT32),)
    return (_computed(op, op.builder.plain(value), affine),)


def _is_constant(op: OpContext) -> bool:
    """Return whether scales and zero points are constant."""
    return all(op.is_constant(index) or not op.has(index) for index in (1, 2))


def _spread(op: OpContext, index: int, source: Tensor) -> Tensor:
    """Return scales or zero points, perhaps computed, as float32 that broadcasts to ``source``."""
    tensor, rank = op.cast(op.tensor(index), DType.FLOAT32), len(source.shape)
    block = op.integer("block_size", 0)
    if block:
        axis = op.axis(op.integer("axis", 1), rank)
        wanted = (*source.shape[:axis], -(-source.shape[axis] // max(block, 1)), *source.shape[axis + 1 :])
        if block < 1 or tensor.shape != wanted:
            raise GraphError(op.node.place, f"blocks of {block} with {list(tensor.shape)} scales do not fit {source}")
        # One scale for each block becomes one for each element, by repeating it.
        return op.builder.stored(taken(op, op.made(tensor), axis, np.arange(source.shape[axis]) // block),
                                   as_onnx(rank))  # fmt: skip
    if tensor.elements == 1:
        return op.builder.reshaped(tensor, ())
    if len(tensor.shape) == rank > 1:  # QLinearMatMul has scales of rows and columns of each matrix
        return tensor
    axis = op.axis(op.integer("axis", 1), rank)
    if tensor.shape != source.shape[axis : axis + 1]:
        raise GraphError(op.node.place, f"{list(tensor.shape)} scales do not fit {source}")
    return op.builder.reshaped(tensor, [tensor.elements if at == axis else 1 for at in range(rank)])


def _affine(op: OpContext, dtype: np.dtype[np.generic]) -> Affine:
    affine = affine_of(op.node, op.known, dtype)
    if affine is None:
        raise op.unsupported(
            "the scales and zero points must be constant, and the scales float32", code="input-not-constant"
        )
    check_scales(op.node.place, affine.scales)
    if not affine.fits(op.held(0).shape):
        raise GraphError(op.node.place, f"{affine.scales.size} scales do not fit {op.held(0).tensor}")
    return affine


def _computed(op: OpContext, value: Value, affine: Affine) -> Value:
    """Return scale * (value - zero point), computed in float32."""
    # Scales along an axis follow the stored order of the dimensions.
    axis = None if affine.per_tensor else value.stored(affine.axis % value.rank)
    shape = value.tensor.shape
    real = op.emit(ops.Cast(), [value.tensor], shape, DType.FLOAT32)
    if affine.zero_points.any():
        real = op.emit(ops.Sub(), [real, _along(op, "zero points", affine.zero_points, axis, value.rank)], shape)
    return Value(op.emit(ops.Mul(), [real, _along(op, "scales", affine.scales, axis, value.rank)], shape), value.order)


def _computed_by_blocks(op: OpContext) -> Value:
    """Return scale * (value - zero point), with one scale and zero point per block along an axis."""
    source = op.tensor(0)
    axis = op.axis(op.integer("axis", 1), len(source.shape))
    scales = _for_each(op, _block_scales(op), source, axis)
    real = op.cast(source, DType.FLOAT32)
    if op.has(2):
        real = op.subtract(real, _for_each(op, op.constant(2, "zero points"), source, axis))
    return op.made(op.multiply(real, scales))


def _block_scales(op: OpContext) -> Array:
    scales = op.constant(1, "scales")
    check_scales(op.node.place, scales)
    return scales


def _for_each(op: OpContext, values: Array, source: Tensor, axis: int) -> Tensor:
    """Return ``values``, one per block along ``axis``, as float32 with one number per element of ``source``."""
    block, size = op.integer("block_size", 0), source.shape[axis]
    wanted = (*source.shape[:axis], -(-size // max(block, 1)), *source.shape[axis + 1 :])
    if block < 1 or values.shape != wanted:
        raise GraphError(op.node.place, f"blocks of {block} with {list(values.shape)} scales do not fit {source}")
    # A block may be longer than the dimension, and must not be repeated beyond it.
    block = min(block, size)
    op.check_room((*values.shape, block), DType.FLOAT32.size)
    repeated = np.repeat(values.astype(np.float32), block, axis).take(range(size), axis)
    return op.weights("blocks", repeated)


def _along(op: OpContext, word: str, values: Array, axis: int | None, rank: int) -> Tensor:
    """Add ``values`` as float32 along the stored ``axis``."""
    spread = () if axis is None else tuple(-1 if other == axis else 1 for other in range(rank))
    return op.weights(word, values.astype(np.float32).reshape(spread))


_TYPES = {int(onnx.TensorProto.UINT8): np.uint8, int(onnx.TensorProto.INT8): np.int8,
          int(onnx.TensorProto.INT16): np.int16, int(onnx.TensorProto.UINT16): np.uint16}  # fmt: skip


def _quantize(op: OpContext) -> tuple[Value, ...]:
    """Quantise the input, unless its tensor is quantised this way already."""
    value = op.held(0)
    if not _is_constant(op):
        return (_rounded_by_computed(op),)
    # ONNX's default is uint8 if neither a zero point nor output_dtype selects another type.
    wanted = op.integer("output_dtype", 0) or int(onnx.TensorProto.UINT8)
    if wanted not in _TYPES:
        raise op.unsupported(
            f"output_dtype {wanted} is not supported", "use uint8, int8, uint16 or int16", code="type-unsupported"
        )
    if op.integer("block_size", 0):
        return (_rounded_by_blocks(op, np.dtype(_TYPES[wanted])),)
    affine = _affine(op, np.dtype(_TYPES[wanted]))
    # A tensor may hold the numbers with another scale (``Affine.held``). Then its integers are not the ones that ONNX
    # defines, which matters if something reads them as integers.
    held = affine.held() if affine.exact or op.only_dequantized else None
    if held is None and affine.zero_points.dtype not in _TYPES.values():
        raise op.unsupported(
            f"zero points of {affine.zero_points.dtype} are not supported",
            "use uint8, int8, uint16 or int16",
            code="type-unsupported",
        )
    if held is None:
        return (_rounded(op, op.value(0), affine),)
    declared = affine.declared
    tensor = value.tensor
    if value.quantization != held or tensor.dtype is not affine.holder:
        # Equal scales keep the tensor; only others need a rescaling.
        tensor = op.emit(ops.Quantize(), [tensor], tensor.shape, affine.holder, held)
    return (Value(limited(op, tensor, *affine.limit()), value.order, declared),)


def _rounded_by_computed(op: OpContext) -> Value:
    """Return input 0 quantised with computed scales or zero points, in float32."""
    wanted = op.integer("output_dtype", 0) or int(onnx.TensorProto.UINT8)
    dtype = op.held(2).dtype if op.has(2) else ELEMENT_TYPES.get(wanted)
    if dtype is None or dtype.numpy not in _TYPES.values():
        raise op.unsupported(
            f"quantising to {dtype.value if dtype else wanted} is not supported",
            "use uint8, int8, uint16 or int16",
            code="type-unsupported",
        )
    source = op.tensor(0)
    zero_points = _spread(op, 2, source) if op.has(2) else op.number("zero point", 0.0)
    return op.made(_steps(op, source, _spread(op, 1, source), zero_points, dtype.numpy))


def _rounded(op: OpContext, value: Value, affine: Affine) -> Value:
    """Return value / scale, rounded, plus zero point, computed in float32, for quantisations that no tensor has."""
    axis = None if affine.per_tensor else value.stored(affine.axis % value.rank)
    scales = _along(op, "scales", affine.scales, axis, value.rank)
    zero_points = _along(op, "zero points", affine.zero_points, axis, value.rank)
    return Value(_steps(op, value.tensor, scales, zero_points, affine.zero_points.dtype), value.order)


def _rounded_by_blocks(op: OpContext, dtype: np.dtype[np.generic]) -> Value:
    source, scales = op.tensor(0), _block_scales(op)
    axis = op.axis(op.integer("axis", 1), len(source.shape))
    zero_points = op.constant(2, "zero points") if op.has(2) else np.zeros(scales.shape, dtype)
    if zero_points.dtype not in _TYPES.values():
        raise op.unsupported(
            f"zero points of {zero_points.dtype} are not supported",
            "use uint8, int8, uint16 or int16",
            code="type-unsupported",
        )
    steps, offsets = _for_each(op, scales, source, axis), _for_each(op, zero_points, source, axis)
    return op.made(_steps(op, source, steps, offsets, zero_points.dtype))


def _steps(op: OpContext, x: Tensor, scales: Tensor, zero_points: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """Return x / scale, rounded half to even, plus zero point, clamped to the range of ``dtype``."""
    limits = np.iinfo(dtype)
    # The zero point is added after rounding: half to even would otherwise depend on whether it is odd.
    whole = op.add(op.unary(ops.Round(), op.divide(x, scales)), zero_points)
    return op.cast(clamped(op, whole, limits.min, limits.max), DType(dtype.name))


def _bit_cast(op: OpContext) -> tuple[Value, ...]:
    value, dtype = op.value(0), _wanted(op)
    return (Value(op.emit(ops.BitCast(), [value.tensor], value.tensor.shape, dtype), value.order),)


def _wanted(op: OpContext) -> DType:
    """Return the type that the attribute ``to`` names."""
    wanted = op.integer("to", 0)
    if wanted not in ELEMENT_TYPES:
        names = onnx.TensorProto.DataType
        name = names.Name(wanted) if wanted in names.values() else str(wanted)
        raise op.unsupported(
            f"a conversion to {name} is not supported",
            "convert to another type, such as FLOAT or INT8",
            code="type-unsupported",
        )
    return ELEMENT_TYPES[wanted]


def _cast_like(op: OpContext) -> tuple[Value, ...]:
    like = element_type(op.constant(1, "type")) if op.is_constant(1) else op.held(1).dtype
    if op.is_constant(0) and op.constant(0, "value").dtype == np.float64:  # which no tensor can have
        return (op.made(op.weights("cast", op.constant(0, "value").astype(like.numpy))),)
    return (_converted(op, like),)


def _converted(op: OpContext, dtype: DType) -> Value:
    value = op.held(0)
    if value.dtype is dtype:
        return value
    value = op.builder.plain(value)
    return Value(op.emit(ops.Cast(), [value.tensor], value.tensor.shape, dtype), value.order)


OPERATORS: Mapping[str, Converter] = {
    "BitCast": _bit_cast,
    "Cast": lambda op: (_converted(op, _wanted(op)),),
    "CastLike": _cast_like,
    "DequantizeLinear": _dequantize,
    "QuantizeLinear": _quantize,
}
